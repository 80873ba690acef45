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

// server is a server process on a loopback port.
type server struct {
	name    string
	address string
	want    response // to a valid request
	metrics string   // address of /metrics; empty: none

	child  *subprocess.Child
	log    *os.File // its standard error
	cancel context.CancelFunc
}

// programs are the paths of the measured programs.
type programs struct {
	portal   string // as shipped
	baseline string // with a constant in place of the store
	plain    string // this program, which has the plain handler
}

// buildPrograms builds the programs in dir.
func buildPrograms(ctx context.Context, dir string) (programs, error) {
	self, err := os.Executable()
	if err != nil {
		return programs{}, err
	}
	p := programs{portal: filepath.Join(dir, "portal"), baseline: filepath.Join(dir, "baseline"), plain: self}
	for path, tags := range map[string]string{p.portal: "nomsgpack", p.baseline: "nomsgpack,nostore"} {
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-tags", tags, "-o", path, "portal/cmd/portal") //nolint:gosec // constant arguments
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			return programs{}, fmt.Errorf("build the portal: %w\n%s", err, output)
		}
	}
	return p, nil
}

// startPortal starts a portal on a database, and returns when it grants the tenant a token.
func (b *bench) startPortal(ctx context.Context, name, program, databaseURL string, t tenant) (*server, error) {
	address, addressErr := subprocess.FreeAddress()
	metrics, metricsErr := subprocess.FreeAddress()
	if err := errors.Join(addressErr, metricsErr); err != nil {
		return nil, err
	}
	s, err := b.start(ctx, name, address, t, program, []string{"serve"},
		"PORTAL_METRICS_ADDR="+metrics,
		"PORTAL_ADDR="+address,
		"DATABASE_URL="+databaseURL,
		"PORTAL_BASE_URL=http://"+host,
		"PORTAL_SECRET="+strings.Repeat("bench", 8),
		// The limiter runs, but no key reaches the limit.
		"PORTAL_RATE_LIMIT=1000000:1000000",
	)
	if err != nil {
		return nil, err
	}
	s.metrics = metrics
	return s, nil
}

// startPlain starts the plain handler. It queries the database for each key unless the URL is
// empty.
func (b *bench) startPlain(ctx context.Context, name, databaseURL string, t tenant, env ...string) (*server, error) {
	address, err := subprocess.FreeAddress()
	if err != nil {
		return nil, err
	}
	return b.start(ctx, name, address, t, b.programs.plain, []string{plainCommand, address, databaseURL}, env...)
}

// start starts a server, and returns when it grants the tenant a token.
func (b *bench) start(ctx context.Context, name, address string, t tenant, program string, args []string, env ...string) (*server, error) {
	s, err := b.launch(ctx, name, address, program, args, env...)
	if err != nil {
		return nil, err
	}
	if err := s.awaitReady(ctx, t.keys[0]); err != nil {
		text, _ := os.ReadFile(s.log.Name())
		s.stop()
		return nil, fmt.Errorf("start %s: %w\n%s", name, err, text)
	}
	return s, nil
}

// launch starts a server.
func (b *bench) launch(ctx context.Context, name, address, program string, args []string, env ...string) (*server, error) {
	// The log is a file, because the cost of writing it is part of the measurement.
	log, err := os.OpenFile(filepath.Join(b.dir, address+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // in a temporary directory
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	command := exec.CommandContext(ctx, program, args...) //nolint:gosec // one of the programs built above
	command.Dir = b.dir
	// All programs use the portal's defaults for the garbage collector.
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GOGC=400", "GOMEMLIMIT=256MiB"}, env...)
	command.Stderr = log
	// An interrupt from the keyboard reaches only this process, which then stops the others.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopTimeout
	child, err := subprocess.Start(command)
	if err != nil {
		cancel()
		return nil, errors.Join(err, log.Close())
	}
	s := &server{name: name, address: address, child: child, log: log, cancel: cancel}
	return s, nil
}

// stop stops the process and waits until it has exited.
func (s *server) stop() {
	s.cancel()
	<-s.child.Exited()
	_ = s.log.Close()
}

// usage returns the CPU time that the process has used since its start, and the bytes that it has
// written.
func (s *server) usage() (cpu time.Duration, written int64, err error) {
	return processTree(s.child.Process.Pid)
}

// truncateLog empties the log, which frees disk space.
func (s *server) truncateLog() error { return s.log.Truncate(0) }

// awaitReady requests a token until the server returns one, and stores the expected response.
func (s *server) awaitReady(ctx context.Context, key apiKey) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return s.child.AwaitReady(ctx, func(ctx context.Context) error {
		length, err := checkToken(ctx, s.address, key)
		s.want = accepted(length)
		return err
	})
}

// checkToken requests a token and returns the length of the body. Unlike the clients of a load, it
// checks the whole response.
func checkToken(ctx context.Context, address string, key apiKey) (int, error) {
	c, err := dial(ctx, address, time.Now().Add(stopTimeout))
	if err != nil {
		return 0, err
	}
	defer c.close()
	got, body, err := c.requestToken(key)
	if err != nil {
		return 0, err
	}
	if got.status != http.StatusOK {
		return 0, fmt.Errorf("status %d: %s", got.status, body)
	}
	var token tokenBody
	if err := json.Unmarshal(body, &token); err != nil {
		return 0, fmt.Errorf("response %s: %w", body, err)
	}
	var claims jwt.RegisteredClaims
	if _, _, err := jwt.NewParser().ParseUnverified(token.AccessToken, &claims); err != nil ||
		claims.Issuer != "http://"+host {
		return 0, fmt.Errorf("response %s: not a widget token of this issuer", body)
	}
	return got.length, nil
}
