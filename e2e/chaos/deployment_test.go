package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"portal/models/modelstest/postgres"
	"portal/models/modelstest/subprocess"
)

const (
	portals      = 3
	restartDelay = 300 * time.Millisecond
)

// deployment is a set of portals, their two PostgreSQL servers, and the links between them.
type deployment struct {
	dir     string
	servers [2]*server
	primary int // index into servers

	replication [2]*link // replication[i] is the standby's link to server i as the primary
	portals     [portals]*portal
}

// portal is one instance. Its supervisor restarts it when it exits.
type portal struct {
	url     string
	links   [2]*link // to each server
	log     *os.File
	prepare func() *exec.Cmd // returns a new command that runs the portal

	mu         sync.Mutex
	child      *subprocess.Child
	stopping   bool          // do not restart it
	supervised chan struct{} // closed when the supervisor returns
	kills      int           // number of calls of kill
	exits      int
}

// deploy starts both servers, with an empty database. The caller must call remove, even after an
// error.
func deploy(ctx context.Context, dir string) (*deployment, error) {
	d := &deployment{dir: dir}
	bin, err := postgres.FindPrograms()
	if err != nil {
		return d, err
	}
	for i, name := range []string{"a", "b"} {
		if d.servers[i], err = newServer(dir, bin, name); err != nil {
			return d, err
		}
		if d.replication[i], err = newLink(d.servers[i].address()); err != nil {
			return d, err
		}
	}
	if err := d.servers[0].initialize(ctx); err != nil {
		return d, err
	}
	if err := d.servers[0].start(ctx); err != nil {
		return d, fmt.Errorf("%w\n%s", err, d.servers[0].lastLines())
	}
	if err := d.servers[0].query(ctx, "CREATE DATABASE chaos"); err != nil {
		return d, err
	}
	return d, d.makeStandby(ctx, 1)
}

// makeStandby copies the primary to server i and returns when that is a synchronous standby.
func (d *deployment) makeStandby(ctx context.Context, i int) error {
	s := d.servers[i]
	if err := s.copyFrom(ctx, d.replication[d.primary].port()); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, s.lastLines())
	}
	return retry(ctx, serverTimeout, d.servers[d.primary].checkStandby)
}

// remove stops all processes and unmounts the disks.
func (d *deployment) remove() error {
	d.stopPortals()
	var errs []error
	for i := range d.servers {
		if d.servers[i] != nil {
			errs = append(errs, d.servers[i].remove())
		}
		if d.replication[i] != nil {
			d.replication[i].close()
		}
	}
	return errors.Join(errs...)
}

// environment returns the environment of a portal. The ports are those of the servers or of their
// links.
func (d *deployment) environment(address string, ports [2]int) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		fmt.Sprintf("DATABASE_URL=postgres://portal@127.0.0.1:%d,127.0.0.1:%d/chaos?sslmode=disable",
			ports[0], ports[1]),
		"PORTAL_SECRET=" + strings.Repeat("chaos", 8),
		"PORTAL_ADDR=" + address,
		"PORTAL_BASE_URL=http://127.0.0.1",
		"PORTAL_RATE_LIMIT=off",
	}
}

// startPortals starts the portals with this program and returns when all are ready.
func (d *deployment) startPortals(ctx context.Context, program string) error {
	for i := range d.portals {
		address, err := subprocess.FreeAddress()
		if err != nil {
			return err
		}
		p := &portal{url: "http://" + address, supervised: make(chan struct{})}
		d.portals[i] = p
		var ports [2]int
		for j, s := range d.servers {
			if p.links[j], err = newLink(s.address()); err != nil {
				return err
			}
			ports[j] = p.links[j].port()
		}
		if p.log, err = os.Create(filepath.Join(d.dir, fmt.Sprintf("%s-%d.log", filepath.Base(program), i))); err != nil {
			return err
		}
		p.prepare = func() *exec.Cmd {
			command := exec.Command(program, "serve")
			command.Dir, command.Env = d.dir, d.environment(address, ports)
			command.Stdout, command.Stderr = p.log, p.log
			// An interrupt reaches only the test process. The portal must not outlive
			// that process.
			command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
			return command
		}
		if err := p.start(); err != nil {
			return err
		}
		go p.supervise()
	}
	for _, p := range d.portals {
		if err := retry(ctx, recoveryLimit, p.ready); err != nil {
			return fmt.Errorf("%w\n%s", err, lastLines(p.log.Name()))
		}
	}
	return nil
}

func (d *deployment) stopPortals() {
	for i, p := range d.portals {
		if p == nil {
			continue
		}
		p.stop()
		d.portals[i] = nil
	}
}

// operator runs a command of the program and returns its standard output.
func (d *deployment) operator(ctx context.Context, program, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = d.environment("127.0.0.1:0", [2]int{d.servers[0].port, d.servers[1].port})
	command.Stdin = strings.NewReader(input)
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("portal %s: %w: %s", args[0], err, stderr.String())
	}
	return strings.TrimSpace(string(output)), nil
}

// duplicateLabels returns the labels that more than one key has.
func (d *deployment) duplicateLabels(ctx context.Context) ([]string, error) {
	conn, err := pgx.Connect(ctx,
		fmt.Sprintf("postgres://portal@%s/chaos?sslmode=disable", d.servers[d.primary].address()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(ctx, "SELECT label FROM api_keys GROUP BY label HAVING count(*) > 1")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (p *portal) start() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopping {
		p.child, err = subprocess.Start(p.prepare())
	}
	return err
}

// supervise restarts the portal after each exit, until stop is called.
func (p *portal) supervise() {
	defer close(p.supervised)
	for {
		p.mu.Lock()
		running := p.child
		p.mu.Unlock()
		<-running.Exited()
		time.Sleep(restartDelay)
		p.mu.Lock()
		stopping := p.stopping
		p.exits++
		p.mu.Unlock()
		if stopping || p.start() != nil {
			return
		}
	}
}

// kill kills the portal with SIGKILL. Its supervisor restarts it.
func (p *portal) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kills++
	_ = p.child.Process.Kill()
}

func (p *portal) signal(which syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.child.Process.Signal(which)
}

func (p *portal) stop() {
	p.mu.Lock()
	p.stopping = true
	started := p.child
	p.mu.Unlock()
	if started != nil {
		started.Kill()
		<-p.supervised
	}
	for _, l := range p.links {
		if l != nil {
			l.close()
		}
	}
	if p.log != nil {
		_ = p.log.Close()
	}
}

// ready returns an error unless /readyz returns 200.
func (p *portal) ready(ctx context.Context) error { return subprocess.CheckOK(ctx, p.url+"/readyz") }

// panics returns the lines of the portal's log that report a panic.
func (p *portal) panics() []string {
	text, _ := os.ReadFile(p.log.Name())
	var found []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"panic`) || strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			found = append(found, line)
		}
	}
	return found
}
