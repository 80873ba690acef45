package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"portal/handlers/handlerstest"
	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

const (
	portals      = 3
	portalSecret = "chaos, the secret of the portals of this test"
	baseURL      = "http://127.0.0.1"
)

// deployment is a set of portals, their two PostgreSQL servers, and the links between them.
type deployment struct {
	dir     string
	program string               // the portals run it
	issuer  *handlerstest.Issuer // of the tokens of workloads
	servers [2]*server
	primary int // index into servers

	replication [2]*link // replication[i] is the standby's link to server i as the primary
	portals     [portals]*portal
}

// portal is one instance.
type portal struct {
	url    string
	links  [2]*link // to each server
	log    *os.File
	run    func() *exec.Cmd // returns a new command that runs the portal
	child  *subprocess.Child
	killed bool
}

// deploy starts both servers, with an empty database, until the test ends.
func deploy(ctx context.Context, t *testing.T, dir string) *deployment {
	t.Helper()
	d := &deployment{dir: dir, issuer: handlerstest.NewIssuer(t)}
	for i, name := range []string{"a", "b"} {
		d.servers[i] = newServer(t, dir, name)
		d.replication[i] = newLink(t, d.servers[i].port)
	}
	modelstest.Must(t, d.servers[0].initialize(ctx))
	modelstest.Must(t, d.servers[0].start(ctx))
	modelstest.Must(t, d.makeStandby(ctx))
	return d
}

// makeStandby copies the primary to the other server and returns when that is a synchronous
// standby.
func (d *deployment) makeStandby(ctx context.Context) error {
	standby := d.servers[1-d.primary]
	if err := standby.copyFrom(ctx, d.replication[d.primary].port()); err != nil {
		return err
	}
	if err := standby.start(ctx); err != nil {
		return err
	}
	return retry(ctx, serverTimeout, d.servers[d.primary].checkStandby)
}

// startPortals starts the portals with this program until the test ends, and returns when all are
// ready.
func (d *deployment) startPortals(ctx context.Context, t *testing.T, program string) {
	t.Helper()
	d.program = program
	for i := range d.portals {
		address := modelstest.Value(subprocess.FreeAddress())(t)
		p := &portal{url: "http://" + address}
		d.portals[i] = p
		for j, s := range d.servers {
			p.links[j] = newLink(t, s.port)
		}
		name := fmt.Sprintf("%s-%d.log", filepath.Base(program), i)
		p.log = modelstest.Value(os.Create(filepath.Join(d.dir, name)))(t)
		p.run = func() *exec.Cmd {
			command := exec.Command(program, "serve")
			command.Dir, command.Env = d.dir, []string{
				fmt.Sprintf("DATABASE_URL=postgres://portal@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable",
					p.links[0].port(), p.links[1].port()),
				"PORTAL_SECRET=" + portalSecret, "PORTAL_ADDR=" + address,
				"PORTAL_BASE_URL=" + baseURL, "PORTAL_RATE_LIMIT=off", "PORTAL_WORKLOAD_ISSUERS=" + d.issuer.URL,
			}
			command.Stdout, command.Stderr = p.log, p.log
			// An interrupt reaches only the test process. The portal must not outlive
			// that process.
			command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
			return command
		}
		modelstest.Must(t, p.start())
		t.Cleanup(func() { p.child.Kill() })
	}
	for _, p := range d.portals {
		if err := retry(ctx, recoveryLimit, p.ready); err != nil {
			t.Fatalf("%v\n%s", err, lastLines(p.log.Name()))
		}
	}
}

// command runs a command of an operator on the primary.
func (d *deployment) command(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, d.program, args...)
	command.Dir, command.Env = d.dir, []string{"DATABASE_URL=" + d.servers[d.primary].url(), "PORTAL_SECRET=" + portalSecret, "PATH=" + os.Getenv("PATH")}
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", args, err, output)
	}
	return nil
}

func (p *portal) ready(ctx context.Context) error { return subprocess.CheckOK(ctx, p.url+"/readyz") }

func (p *portal) start() (err error) {
	p.child, err = subprocess.Start(p.run())
	p.killed = false
	return err
}

// urls returns the addresses of the portals.
func (d *deployment) urls() (urls []string) {
	for _, p := range d.portals {
		urls = append(urls, p.url)
	}
	return urls
}

// failures returns the lines of the portal's log that report a panic or a response 500.
func (p *portal) failures() (found []string) {
	text, _ := os.ReadFile(p.log.Name())
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"panic`) || strings.HasPrefix(line, "panic:") ||
			strings.HasPrefix(line, "fatal error:") || strings.Contains(line, `"status":500`) {
			found = append(found, line)
		}
	}
	return found
}
