package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

// The time limits of a start and a stop. They are long because only failures wait for them.
const (
	startTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
)

// process is one running portal.
type process struct {
	*subprocess.Child

	settings settings
	URL      string
	log      *modelstest.LogBuffer
}

// settings are the configuration of a portal.
type settings struct {
	binary      string
	databaseURL string
	secret      string
	address     string   // listen address; empty: a free port of the loopback interface
	baseURL     string   // public URL if it is not the listen address
	extra       []string // more environment variables
}

func (s settings) environment() []string {
	env := []string{"DATABASE_URL=" + s.databaseURL, "PORTAL_SECRET=" + s.secret, "PORTAL_ADDR=" + s.address}
	if s.baseURL != "" {
		env = append(env, "PORTAL_BASE_URL="+s.baseURL)
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		env = append(env, name+"="+os.Getenv(name))
	}
	return append(env, s.extra...)
}

// startProcess starts a portal and returns when it is ready.
func startProcess(s settings) (*process, error) {
	fixed := s.address != ""
	for attempt := 1; ; attempt++ {
		if !fixed {
			address, err := subprocess.FreeAddress()
			if err != nil {
				return nil, err
			}
			s.address = address
		}
		p := &process{settings: s, URL: "http://" + s.address, log: &modelstest.LogBuffer{}}
		err := p.start()
		if err == nil {
			return p, nil
		}
		// Another process may have taken the free port in the meantime.
		if fixed || attempt == 3 || !strings.Contains(p.log.String(), "address already in use") {
			return nil, err
		}
	}
}

// start starts the portal and waits until it is ready. A stopped portal gets its old address.
func (p *process) start() (err error) {
	command := exec.Command(p.settings.binary, "serve")
	command.Env = p.settings.environment()
	command.Stdout, command.Stderr = p.log, p.log
	if p.Child, err = subprocess.Start(command); err != nil {
		return fmt.Errorf("start the portal: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	err = p.AwaitReady(ctx, func(ctx context.Context) error { return subprocess.CheckOK(ctx, p.URL+"/readyz") })
	if err != nil {
		p.Kill()
		return fmt.Errorf("start the portal: %w\n%s", err, p.log)
	}
	return nil
}

// stop stops the portal with SIGTERM. It returns an error unless the portal exits with status 0 in
// time.
func (p *process) stop() error {
	if err := p.Stop(stopTimeout); err != nil {
		return fmt.Errorf("stop the portal: %w\n%s", err, p.log)
	}
	return nil
}

// pause stops the portal in the middle of a test. [process.resume] starts it again.
func (p *process) pause(t *testing.T) {
	t.Helper()
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
}

func (p *process) resume(t *testing.T) {
	t.Helper()
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
}

// operator runs one of the portal's other commands on the same database, and returns its standard
// output.
func (p *process) operator(input string, arguments ...string) (string, error) {
	command := exec.Command(p.settings.binary, arguments...)
	command.Env = p.settings.environment()
	command.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("portal %s: %w: %s", strings.Join(arguments, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(output)), nil
}
