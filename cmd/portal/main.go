// Command portal serves the customer portal and its JSON API, and does an operator's work beside them: migrations,
// accounts, agents and revocations. It reads the configuration and connects the pieces; the rules live in package
// models. Secrets reach it by the environment or standard input and never by flag, where any user of the machine
// could read them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// version is set by the linker (make build).
var version = "unversioned"

const (
	exitFailed  = 1 // the command was understood and could not be carried out
	exitRefused = 2 // the command line or the configuration is wrong; nothing was done
)

type commandLine struct {
	Serve   serveCommand   `cmd:"" default:"withargs" help:"Serve the portal and the API. This is the default command."`
	Migrate migrateCommand `cmd:"" help:"Bring the database's schema up to date, and do nothing else."`
	Account struct {
		Create accountCreateCommand `cmd:"" help:"Make an account and its user, with the password on standard input; print the account's id."`

		ResetPassword accountResetPasswordCommand `cmd:"" help:"Give a user another password, read from standard input, and end all of their sessions."`
	} `cmd:"" help:"For operators: accounts."`
	Agent struct {
		Create agentCreateCommand `cmd:"" help:"Make an agent for an account; print its id."`
	} `cmd:"" help:"For operators: agents."`
	Key struct {
		Revoke keyRevokeCommand `cmd:"" help:"Revoke an API key at once, by its id or by the key itself on standard input; print its id."`
	} `cmd:"" help:"For operators: API keys."`
	Healthcheck healthcheckCommand `cmd:"" hidden:"" help:"Ask the portal that runs on this host whether it is ready; for a container that holds nothing else to ask with."`

	Version kong.VersionFlag `help:"Print the version and stop."`
}

const description = `A customer portal for API keys, and the API they open.

By the environment alone, because they are secrets: DATABASE_URL (sqlite:data/portal.db unless set, or postgres://...), PORTAL_SECRET and PORTAL_SECRET_PREVIOUS.`

// terminal is the three streams of the process. Results go to out and everything else to err.
type terminal struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for a graceful stop; a second one ends the process there and then.
	context.AfterFunc(ctx, restore)
	os.Exit(run(ctx, os.Args[1:], terminal{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// run carries out one command line and returns the exit status.
func run(ctx context.Context, args []string, t terminal) int {
	var line commandLine
	parser, err := kong.New(&line,
		kong.Name("portal"),
		kong.Description(description),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"version": version},
		kong.Writers(t.out, t.err),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(t),
	)
	if err != nil {
		return report(t.err, err)
	}
	command, err := parser.Parse(args)
	if err != nil {
		return report(t.err, refusal("%s; portal --help tells what there is", err))
	}
	for _, name := range unknownNames(os.Environ()) {
		_, _ = fmt.Fprintf(t.err, "portal: %s: unknown name, ignored; check its spelling or unset it\n", name)
	}
	return report(t.err, command.Run())
}

// report writes err to w, one line for each problem, and returns the exit status it stands for.
func report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	status, lines := exitFailed, []string{err.Error()}
	if refused, ok := errors.AsType[problems](err); ok {
		status, lines = exitRefused, refused
	}
	for _, line := range lines {
		// Drivers break their messages over several lines.
		_, _ = fmt.Fprintln(w, "portal: "+strings.Join(strings.Fields(line), " "))
	}
	return status
}
