package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"portal/models/modelstest/postgres"
	"portal/models/modelstest/subprocess"
)

const (
	portals      = 3
	portalSecret = "chaos, the secret of the portals of this test"
)

// deployment is a set of portals, their two PostgreSQL servers, and the links between them.
type deployment struct {
	dir     string
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
		if d.replication[i], err = newLink(d.servers[i].port); err != nil {
			return d, err
		}
	}
	if err := d.servers[0].initialize(ctx); err != nil {
		return d, err
	}
	if err := d.servers[0].start(ctx); err != nil {
		return d, err
	}
	return d, d.makeStandby(ctx)
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

// startPortals starts the portals with this program and returns when all are ready.
func (d *deployment) startPortals(ctx context.Context, program string) error {
	for i := range d.portals {
		address, err := subprocess.FreeAddress()
		if err != nil {
			return err
		}
		p := &portal{url: "http://" + address}
		d.portals[i] = p
		for j, s := range d.servers {
			if p.links[j], err = newLink(s.port); err != nil {
				return err
			}
		}
		name := fmt.Sprintf("%s-%d.log", filepath.Base(program), i)
		if p.log, err = os.Create(filepath.Join(d.dir, name)); err != nil {
			return err
		}
		p.run = func() *exec.Cmd {
			command := exec.Command(program, "serve")
			command.Dir, command.Env = d.dir, []string{
				fmt.Sprintf("DATABASE_URL=postgres://portal@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable",
					p.links[0].port(), p.links[1].port()),
				"PORTAL_SECRET=" + portalSecret, "PORTAL_ADDR=" + address,
				"PORTAL_BASE_URL=http://127.0.0.1", "PORTAL_RATE_LIMIT=off",
			}
			command.Stdout, command.Stderr = p.log, p.log
			// An interrupt reaches only the test process. The portal must not outlive
			// that process.
			command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
			return command
		}
		if err := p.start(); err != nil {
			return err
		}
	}
	for _, p := range d.portals {
		if err := retry(ctx, recoveryLimit, p.ready); err != nil {
			return fmt.Errorf("%w\n%s", err, lastLines(p.log.Name()))
		}
	}
	return nil
}

func (p *portal) ready(ctx context.Context) error { return subprocess.CheckOK(ctx, p.url+"/readyz") }

func (p *portal) start() (err error) {
	p.child, err = subprocess.Start(p.run())
	p.killed = false
	return err
}

func (d *deployment) stopPortals() {
	for i, p := range d.portals {
		if p == nil {
			continue
		}
		if p.child != nil {
			p.child.Kill()
		}
		for _, l := range p.links {
			if l != nil {
				l.close()
			}
		}
		if p.log != nil {
			_ = p.log.Close()
		}
		d.portals[i] = nil
	}
}

// urls returns the addresses of the portals.
func (d *deployment) urls() (urls []string) {
	for _, p := range d.portals {
		urls = append(urls, p.url)
	}
	return urls
}

// duplicateLabels returns the labels that more than one key has.
func (d *deployment) duplicateLabels(ctx context.Context) (labels []string, err error) {
	err = d.servers[d.primary].query(ctx, `SELECT coalesce(array_agg(label), '{}') FROM (
		SELECT label FROM api_keys GROUP BY label HAVING count(*) > 1) AS duplicates`, &labels)
	return labels, err
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
