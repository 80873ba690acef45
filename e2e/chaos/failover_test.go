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
)

// failsOverAsDocumented loses the primary and runs the commands of "Fail over" in the operators'
// guide.
func (r *run) failsOverAsDocumented(ctx context.Context, t *testing.T, program string) {
	if err := r.startPortals(ctx, program); err != nil {
		t.Fatal(err)
	}
	defer r.stopPortals()
	h, report := newHistory(), newReport()
	c := newClient(r.account(), h, report)
	first := instance{0, r.portals[0].url}
	kept, revoked := generateFor(ctx, t, c, first, "kept"), generateFor(ctx, t, c, first, "revoked")
	if o := c.revoke(ctx, first, revoked); o != confirmed {
		t.Fatalf("the revocation is %s", o)
	}
	commands := documentedFailover(t)
	lost := r.servers[r.primary]
	r.primary = 1 - r.primary
	promoted := r.servers[r.primary]
	lost.kill()

	environment := append(os.Environ(),
		"PGHOST=127.0.0.1", "PGUSER=portal", "PGPORT="+strconv.Itoa(promoted.port), "PGDATA="+lost.data(), "PATH="+lost.bin+":"+os.Getenv("PATH"))
	bash := func(script *exec.Cmd) {
		script.Env = environment
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
	if err := os.RemoveAll(lost.data() + ".lost"); err != nil {
		t.Error(err)
	}
	if err := lost.start(ctx); err != nil {
		t.Fatalf("%v\n%s", err, lost.lastLines())
	}
	bash(exec.CommandContext(ctx, "bash", "-euc", commands[3]))

	for i, p := range r.portals {
		at := instance{i, p.url}
		if o := c.use(ctx, at, kept); o != accepted {
			t.Errorf("portal %d: the use of the active key is %s", i, o)
		}
		if o := c.use(ctx, at, revoked); o != refused {
			t.Errorf("portal %d: the use of the revoked key is %s", i, o)
		}
		generateFor(ctx, t, c, at, fmt.Sprintf("new %d", i))
	}
	if v := h.check(); len(v.violations) > 0 || len(report.failures) > 0 {
		t.Errorf("%v %v", v.violations, report.failures)
	}
}

// documentedFailover returns the commands of the steps in the guide.
func documentedFailover(t *testing.T) (commands []string) {
	t.Helper()
	text, err := os.ReadFile("../../cmd/portal/operations/postgresql.md")
	if err != nil {
		t.Fatal(err)
	}
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
func generateFor(ctx context.Context, t *testing.T, c *client, at instance, label string) *key {
	t.Helper()
	k := &key{label: label}
	err := retry(ctx, recoveryLimit, func(ctx context.Context) error {
		p, err := c.list(ctx, at, nil)
		if err == nil && c.generate(ctx, at, p.form, k) != created {
			err = errUnavailable
		}
		return err
	})
	if err != nil {
		t.Fatalf("portal %d does not generate keys: %v", at.number, err)
	}
	return k
}
