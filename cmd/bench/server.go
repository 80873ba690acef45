package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"portal/models/modelstest/subprocess"
)

const (
	stopTimeout   = 10 * time.Second
	operatorToken = "operator-token-of-the-benchmark-of-40-b"
)

// server is a server process on a loopback port.
type server struct {
	address string
	metrics string // address of /metrics of a portal

	child  *subprocess.Child
	log    *os.File // its standard error
	cancel context.CancelFunc
}

// buildPortal builds the portal with the flags of the Makefile.
func (b *bench) buildPortal(ctx context.Context) error {
	b.portal = filepath.Join(b.dir, "portal")
	return subprocess.BuildPortal(ctx, b.portal)
}

// startPortal starts a portal on a database, and returns when it grants a token.
func (b *bench) startPortal(ctx context.Context, t *tenant) (*server, error) {
	return b.start(ctx, t.keys[0], []string{b.portal, "serve"},
		"PORTAL_ADDR=ADDRESS",
		"PORTAL_METRICS_ADDR=METRICS",
		"DATABASE_URL="+t.url,
		"PORTAL_BASE_URL=http://"+host,
		"PORTAL_SECRET="+strings.Repeat("bench", 8),
		"PORTAL_OPERATOR_TOKEN="+operatorToken,
		// The limiter runs, but no key reaches the limit.
		"PORTAL_RATE_LIMIT=1000000:1000000")
}

// start starts a server, and returns when it grants a token. ADDRESS and METRICS in its environment
// become free addresses.
func (b *bench) start(ctx context.Context, key apiKey, args []string, env ...string) (*server, error) {
	address, addressErr := subprocess.FreeAddress()
	metrics, metricsErr := subprocess.FreeAddress()
	// The log is a file, because the cost of writing it is part of the measurement.
	log, logErr := os.OpenFile(filepath.Join(b.dir, address+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // in a temporary directory
	if err := errors.Join(addressErr, metricsErr, logErr); err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	command := exec.CommandContext(running, args[0], args[1:]...) //nolint:gosec // one of our programs
	command.Dir = b.dir
	for _, variable := range env {
		command.Env = append(command.Env, strings.NewReplacer("=ADDRESS", "="+address, "=METRICS", "="+metrics).Replace(variable))
	}
	command.Stderr = log
	// An interrupt from the keyboard reaches only this process, which then stops the others.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopTimeout
	child, err := subprocess.Start(command)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &server{address: address, metrics: metrics, child: child, log: log, cancel: cancel}
	b.servers = append(b.servers, s)
	waiting, done := context.WithTimeout(ctx, 3*stopTimeout)
	defer done()
	if err := child.AwaitReady(waiting, func(ctx context.Context) error {
		_, err := s.token(ctx, key)
		return err
	}); err != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%v: %w\n%s", args, err, text)
	}
	return s, nil
}

// stopServers stops all servers and waits until they have exited.
func (b *bench) stopServers() {
	for _, s := range b.servers {
		s.cancel()
	}
	for _, s := range b.servers {
		<-s.child.Exited()
		_ = s.log.Close()
	}
	b.servers = nil
}

func (s *server) token(ctx context.Context, key apiKey) (string, error) {
	return ask(ctx, s.address, tokenRequest(key), `"access_token":"(\w+\.[\w-]+\.[\w-]+)"`)
}

// revoke revokes a key through the operator API.
func (s *server) revoke(ctx context.Context, key apiKey) error {
	request := postRequest("/operator/keys/revocations", "application/json", operatorToken, `{"keyId":"`+key.id+`"}`)
	// A revocation that ctx interrupts would be reported as a failure.
	_, err := ask(context.WithoutCancel(ctx), s.address, request, `"(revokedAt)"`)
	return err
}

// metric returns a metric of the portal that has no labels.
func (s *server) metric(ctx context.Context, name string) (float64, error) {
	value, err := ask(ctx, s.metrics, getRequest("/metrics", ""), `(?m)^`+name+` (\S+)$`)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(value, 64)
}

// pageLoads signs in the user of the tenant's first account, and returns loads of one client each
// that reads a page.
func (s *server) pageLoads(ctx context.Context, on *cluster, paths ...string) (loads []*load, err error) {
	form := url.Values{"email": {benchEmail}, "password": {benchPassword}}
	login := postRequest("/login", "application/x-www-form-urlencoded", "", form.Encode())
	cookie, err := ask(ctx, s.address, login, `Set-Cookie: (session[^=]*=[^;]+)`)
	for _, path := range paths {
		loads = append(loads, &load{name: path, servers: []*server{s}, cluster: on, connections: 1, fixed: getRequest(path, "\r\nAccept-Encoding: gzip\r\nCookie: "+cookie)})
	}
	return loads, err
}
