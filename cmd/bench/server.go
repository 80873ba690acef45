package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"portal/models/modelstest/subprocess"
)

const (
	readyTimeout = 30 * time.Second
	stopTimeout  = 10 * time.Second
)

// server is a process of its own that answers on a loopback port.
type server struct {
	name    string
	address string
	want    answer // to a good request

	child  *subprocess.Child
	log    *os.File // its standard error
	cancel context.CancelFunc
}

// programs are the executables that are measured.
type programs struct {
	portal string // as it is shipped
	limit  string // the same with a constant in place of the store
	plain  string // this one, for its plain handler
}

// buildPrograms builds them into a directory.
func buildPrograms(ctx context.Context, dir string) (programs, error) {
	self, err := os.Executable()
	if err != nil {
		return programs{}, err
	}
	p := programs{portal: filepath.Join(dir, "portal"), limit: filepath.Join(dir, "limit"), plain: self}
	for output, tags := range map[string]string{p.portal: "", p.limit: "nostore"} {
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-tags", tags, "-o", output, "portal/cmd/portal") //nolint:gosec // nothing of it comes from outside
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if said, err := build.CombinedOutput(); err != nil {
			return programs{}, fmt.Errorf("build the portal: %w\n%s", err, said)
		}
	}
	return p, nil
}

// startPortal starts a portal that serves this database, and returns it when it
// answers the tenant's first request.
func (b *bench) startPortal(ctx context.Context, name, program, databaseURL string, t tenant) (*server, error) {
	address, err := subprocess.FreeAddress()
	if err != nil {
		return nil, err
	}
	return b.start(ctx, name, address, t, program, []string{"serve"},
		"PORTAL_ADDR="+address,
		"DATABASE_URL="+databaseURL,
		"PORTAL_BASE_URL=http://"+host,
		"PORTAL_SECRET="+strings.Repeat("bench", 8),
		// Counted as it always is, and not reached.
		"PORTAL_RATE_LIMIT=1000000:1000000",
	)
}

// startPlain starts the plain handler, which asks this database for each key
// unless the URL is empty.
func (b *bench) startPlain(ctx context.Context, name, databaseURL string, t tenant, env ...string) (*server, error) {
	address, err := subprocess.FreeAddress()
	if err != nil {
		return nil, err
	}
	return b.start(ctx, name, address, t, b.programs.plain, []string{plainCommand, address, databaseURL}, env...)
}

func (b *bench) start(ctx context.Context, name, address string, t tenant, program string, args []string, env ...string) (*server, error) {
	// A file: what the log costs to write is a part of what is measured.
	log, err := os.OpenFile(filepath.Join(b.dir, address+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // in our own directory
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	command := exec.CommandContext(ctx, program, args...) //nolint:gosec // one of our own programs
	command.Dir = b.dir
	// What the portal would set itself, for all alike.
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GOGC=400", "GOMEMLIMIT=256MiB"}, env...)
	command.Stderr = log
	// An interrupt from the keyboard is for this process, which ends the others.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopTimeout
	child, err := subprocess.Start(command)
	if err != nil {
		cancel()
		return nil, errors.Join(err, log.Close())
	}
	s := &server{name: name, address: address, child: child, log: log, cancel: cancel}
	if err := s.awaitReady(ctx, tokenRequest(t.keys[0].secret, t.agentID.String())); err != nil {
		said, _ := os.ReadFile(log.Name())
		s.stop()
		return nil, fmt.Errorf("start %s: %w\n%s", name, err, said)
	}
	return s, nil
}

// stop ends the process and waits until it has ended.
func (s *server) stop() {
	s.cancel()
	<-s.child.Exited()
	_ = s.log.Close()
}

func (s *server) cpu() (time.Duration, error) {
	p, err := readProcess(s.child.Process.Pid)
	return p.own, err
}

// truncateLog gives the disk space of the log back.
func (s *server) truncateLog() error { return s.log.Truncate(0) }

// awaitReady repeats the request until the server grants a token, and stores the expected answer.
func (s *server) awaitReady(ctx context.Context, request []byte) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return s.child.AwaitReady(ctx, func(ctx context.Context) error {
		length, err := askForToken(ctx, s.address, request)
		s.want = accepted(length)
		return err
	})
}

// askForToken checks that an answer is what it should be, which the clients
// under load do not, and returns the length of its body.
func askForToken(ctx context.Context, address string, request []byte) (int, error) {
	c, err := dial(ctx, address, time.Now().Add(stopTimeout))
	if err != nil {
		return 0, err
	}
	defer c.close()
	got, body, err := c.ask(request)
	if err != nil {
		return 0, err
	}
	if got.status != http.StatusOK {
		return 0, fmt.Errorf("status %d: %s", got.status, body)
	}
	var token tokenBody
	if err := json.Unmarshal(body, &token); err != nil {
		return 0, fmt.Errorf("answer %s: %w", body, err)
	}
	var claims jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(token.AccessToken, &claims); err != nil || claims.Issuer != "http://"+host {
		return 0, fmt.Errorf("answer %s: not a widget token of ours", body)
	}
	return got.length, nil
}
