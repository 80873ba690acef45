package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"portal/models/modelstest"
)

// failsOverAsDocumented loses the primary and runs the commands of "Fail over" in the operators'
// guide.
func (r *run) failsOverAsDocumented(ctx context.Context, t *testing.T, program string) {
	r.startPortals(ctx, t, program)
	report := newReport()
	c := newClient(t, r.account(), r.urls(), r.issuer, report)
	kept, revoked := generateFor(ctx, t, c, 0, "kept"), generateFor(ctx, t, c, 0, "revoked")
	if o := c.revoke(ctx, 0, revoked); o != confirmed {
		t.Fatalf("the revocation is %s", o)
	}
	commands := documentedFailover(t)
	lost := r.servers[r.primary]
	r.primary = 1 - r.primary
	promoted := r.servers[r.primary]
	lost.kill()

	bash := func(script *exec.Cmd) {
		script.Env = append(os.Environ(), "PGHOST=127.0.0.1", "PGUSER=portal", "PGPORT="+strconv.Itoa(promoted.port),
			"PGDATA="+lost.data(), "PATH="+lost.bin+":"+os.Getenv("PATH"))
		if output, err := script.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", script.Args, err, output)
		}
	}
	bash(exec.CommandContext(ctx, "bash", "-euc", commands[0]))
	for _, p := range r.portals {
		bash(exec.CommandContext(ctx, "bash", "-euc",
			strings.ReplaceAll(commands[1], "http://127.0.0.1:8080", p.url)))
	}
	copying, start, found := strings.Cut(commands[2], "pg_ctl")
	if !found || strings.Contains(start, "\n\n") {
		t.Fatalf("the last command does not start the server: %s", commands[2])
	}
	script := lost.command(ctx, "bash", "-euc", copying)
	script.Path = "/bin/bash"
	bash(script)
	modelstest.Must(t, os.RemoveAll(lost.data()+".lost"))
	modelstest.Must(t, lost.start(ctx))
	bash(exec.CommandContext(ctx, "bash", "-euc", commands[3]))

	for at := range r.portals {
		if used, refusal := c.use(ctx, at, kept), c.use(ctx, at, revoked); used != accepted || refusal != refused {
			t.Errorf("portal %d: the active key is %s, the revoked one %s", at, used, refusal)
		}
		generateFor(ctx, t, c, at, fmt.Sprintf("new %d", at))
	}
	r.expectNoViolation(t, report)
}

// documentedFailover returns the commands of the steps in the guide.
func documentedFailover(t *testing.T) (commands []string) {
	t.Helper()
	text := modelstest.Value(os.ReadFile("../../cmd/portal/operations/postgresql.md"))(t)
	_, section, _ := strings.Cut(string(text), "\n## Fail over\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, block := range regexp.MustCompile("(?s)\n *```sh\n(.*?\n) *```\n").FindAllStringSubmatch(section, -1) {
		commands = append(commands, strings.ReplaceAll(block[1], " -h b.example.com", ""))
	}
	if len(commands) != 4 || strings.Contains(strings.Join(commands, ""), "example.com") {
		t.Fatalf("the commands are %q", commands)
	}
	return commands
}

// generateFor generates a key, which must succeed while the deployment is whole.
func generateFor(ctx context.Context, t *testing.T, c *client, at int, label string) *key {
	t.Helper()
	k := &key{label: label}
	modelstest.Must(t, retry(ctx, recoveryLimit, func(ctx context.Context) error {
		p, err := c.list(ctx, at)
		if err == nil && c.generate(ctx, at, p.form, k) != created {
			err = errUnavailable
		}
		return err
	}))
	return k
}
