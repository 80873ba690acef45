// Command portal serves the customer portal and its JSON API. Its other commands are for operators:
// migrations, accounts, users, agents, revocations and backups. Secrets come from the environment
// or from standard input. There are no flags for them, because other users of the machine can read
// the command line.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"
)

type commandLine struct {
	Serve   serveCommand   `cmd:"" help:"Serve the portal and the API. This is the default command."`
	Migrate migrateCommand `cmd:"" help:"Update the database schema and exit."`
	Check   checkCommand   `cmd:"" help:"Say whether the settings work: what answers of the database, LiveKit, the OpenID provider, the mail server and the portal's own addresses."`
	Status  statusCommand  `cmd:"" help:"Print the version, the schema, the size of the database, and what is in it, waits or fails."`
	Account struct {
		Create    accountCreateCommand    `cmd:"" help:"Create an account and its user; read the password from standard input and print the account's id."`
		List      accountListCommand      `cmd:"" help:"List all accounts."`
		Rename    accountRenameCommand    `cmd:"" help:"Rename an account."`
		SetLimits accountSetLimitsCommand `cmd:"" help:"Limit the calls of an account."`
		Disable   accountSwitchCommand    `cmd:"" help:"Refuse an account's keys and tokens, and sign its users out."`
		Enable    accountSwitchCommand    `cmd:"" help:"Accept an account's keys and users again."`
		Erase     accountEraseCommand     `cmd:"" help:"Delete everything of a disabled account for good."`

		ResetPassword accountResetPasswordCommand `cmd:"" help:"Set a user's password, read from standard input, and end all sessions of the user."`
	} `cmd:"" help:"Accounts, for operators."`
	User struct {
		List    userListCommand   `cmd:"" help:"List the users of an account."`
		Add     userAddCommand    `cmd:"" help:"Add a user to an account; read the password from standard input and print the user's id."`
		Disable userSwitchCommand `cmd:"" help:"Sign a user out and refuse further sign-ins."`
		Enable  userSwitchCommand `cmd:"" help:"Let a user sign in again."`

		Remove  userRemoveCommand  `cmd:"" help:"Remove a user, but not the account's last owner."`
		Erase   userEraseCommand   `cmd:"" help:"Remove a user, and delete the user's emails, addresses and browsers for good."`
		SetRole userSetRoleCommand `cmd:"" help:"Change the role of a user: owner or member."`

		ChangeEmail       userChangeEmailCommand       `cmd:"" help:"Change a user's email."`
		ResetSecondFactor userResetSecondFactorCommand `cmd:"" help:"Remove a user's authenticator app, recovery codes and passkeys, and sign the user out."`
	} `cmd:"" help:"Users, for operators."`
	Agent struct {
		Create agentCreateCommand `cmd:"" help:"Create an agent of an account; print its id."`
		List   agentListCommand   `cmd:"" help:"List the agents of an account."`
		Rename agentRenameCommand `cmd:"" help:"Rename an agent."`
		Pause  agentPauseCommand  `cmd:"" help:"Refuse an agent's widget tokens and end its calls until it is resumed."`
		Resume agentPauseCommand  `cmd:"" help:"Issue and accept an agent's widget tokens again."`
		Remove agentRemoveCommand `cmd:"" help:"Remove an agent; its widget tokens are refused."`
	} `cmd:"" help:"Agents, for operators."`
	Key struct {
		List   keyListCommand   `cmd:"" help:"List the API keys of an account, revoked ones too."`
		Revoke keyRevokeCommand `cmd:"" help:"Revoke an API key, given by its id or on standard input; print its id."`
	} `cmd:"" help:"API keys, for operators."`
	Demo struct {
		Seed demoSeedCommand `cmd:"" help:"Create an account with keys, 30 days of usage and activity, and print how to sign in."`
	} `cmd:"" help:"For tests and screenshots."`
	Backup  backupCommand  `cmd:"" help:"Copy the database to a new file while portals run."`
	Restore restoreCommand `cmd:"" help:"Replace the database with a backup; revoked keys stay revoked."`

	Healthcheck healthcheckCommand `cmd:"" hidden:"" help:"Check whether the portal on this host is ready. For containers without other tools."`

	EnvFile envFile `placeholder:"FILE" help:"Read environment variables from a file of NAME=value lines, as systemd and Docker Compose do. Variables that are set already win."`

	Version     versionCommand   `cmd:"" help:"Print the version."`
	VersionFlag kong.VersionFlag `name:"version" help:"Print the version and exit."`
}

const description = `A customer portal for API keys, and a JSON API that authenticates requests with them.

Settings are environment variables: portal serve --help lists them. Every command reads them from a file too, with --env-file FILE.`

func main() {
	messages := newLogQueue(os.Stderr)
	status := run(untilSignal(), os.Args[1:], terminal{in: os.Stdin, out: output{os.Stdout}, err: messages})
	messages.flush()
	os.Exit(status)
}

// untilSignal returns a context that ends with the first signal to stop. A second one ends the
// process at once, except SIGHUP: the system and the shell both send it when a terminal is closed.
// Without a reader, standard output and standard error return an error and end nothing.
func untilSignal() context.Context {
	signal.Ignore(syscall.SIGPIPE)
	stops := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup does
		stops = append(stops, syscall.SIGHUP)
	}
	ctx, restore := signal.NotifyContext(context.Background(), stops...)
	context.AfterFunc(ctx, func() {
		signal.Ignore(syscall.SIGHUP)
		restore()
	})
	return ctx
}

// run runs one command line and returns the exit status.
func run(ctx context.Context, args []string, t terminal) int {
	var line commandLine
	line.Account.Disable.disable, line.User.Disable.disable, line.Agent.Pause.pause = true, true, true
	parser, err := kong.New(&line,
		kong.Name("portal"),
		kong.Description(description),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"version": version},
		kong.Writers(t.out, t.err),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(t),
		kong.KindMapper(reflect.String, kong.MapperFunc(mapText)),
		kong.KindMapper(reflect.Int, kong.MapperFunc(mapNumber)),
		kong.KindMapper(reflect.Int64, kong.MapperFunc(mapNumber)),
		kong.TypeMapper(reflect.TypeFor[uuid.UUID](), kong.MapperFunc(mapID)),
		kong.PostBuild(func(k *kong.Kong) error {
			k.Model.HelpFlag.Help = "Show help."
			return nil
		}),
	)
	if err != nil {
		return report(t.err, err)
	}
	command, err := parser.Parse(withDefaultCommand(args))
	for _, name := range unknownNames(os.Environ()) {
		_ = t.say("%s: unknown variable ignored; check its spelling or unset it", name)
	}
	if _, invalid := errors.AsType[inputErrors](err); err != nil && !invalid {
		err = inputError("%s", withHelp(err))
	}
	if err == nil {
		err = tidyEnvironment()
	}
	if err == nil {
		err = command.Run()
	}
	return report(t.err, err)
}

// withDefaultCommand adds serve to a command line without a command. If kong did so, it would take
// a misspelled command for an argument of serve.
func withDefaultCommand(args []string) []string {
	first := 0 // after --env-file, which every command takes
	for first < len(args) && strings.HasPrefix(args[first], "--env-file") {
		if args[first] == "--env-file" {
			first++
		}
		first++
	}
	if first < len(args) && (!strings.HasPrefix(args[first], "-") || slices.Contains([]string{"-h", "--help", "--version"}, args[first])) {
		return args
	}
	return append([]string{"serve"}, args...)
}

// withHelp returns the text of an error about the command line, and the command that helps.
func withHelp(err error) string {
	name, text := "portal", err.Error()
	if failed, ok := errors.AsType[*kong.ParseError](err); ok {
		for _, step := range failed.Context.Path {
			if step.Command != nil {
				name = step.Command.FullPath()
			}
		}
	}
	if argument, missing := strings.CutPrefix(text, `expected "<`); missing {
		text = "the argument <" + strings.TrimSuffix(argument, `"`) + " is missing"
	}
	if strings.HasSuffix(text, "?") { // did you mean ...?
		return text + " Run " + name + " --help"
	}
	return text + "; run " + name + " --help"
}
