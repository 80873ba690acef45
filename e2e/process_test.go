package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 10 * time.Second // the contract's
)

// process is one running portal.
type process struct {
	program settings
	URL     string
	command *exec.Cmd
	exited  chan struct{} // closed once the process is gone; then exit is its result
	exit    error
	log     *logBook
}

// settings are what a portal is started with.
type settings struct {
	binary      string
	databaseURL string
	secret      string
	address     string // listen address; empty: a free port of the loopback
	baseURL     string // public URL when it is not the listen address
	extra       []string
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

// startProcess returns a portal that is ready to serve.
func startProcess(s settings) (*process, error) {
	chosen := s.address != ""
	for attempt := 1; ; attempt++ {
		if !chosen {
			address, err := freeAddress()
			if err != nil {
				return nil, err
			}
			s.address = address
		}
		p, err := launch(s)
		if err != nil {
			return nil, err
		}
		err = p.awaitReady()
		if err == nil {
			return p, nil
		}
		p.kill()
		// Between asking for a free port and using it, anything on the machine may have taken it.
		if chosen || attempt == 3 || !strings.Contains(p.log.String(), "address already in use") {
			return nil, err
		}
	}
}

func launch(s settings) (*process, error) {
	p := &process{program: s, URL: "http://" + s.address, log: &logBook{}}
	if err := p.run(); err != nil {
		return nil, err
	}
	return p, nil
}

// run starts the program; a stopped one comes back under its old address.
func (p *process) run() error {
	p.command = exec.Command(p.program.binary, "serve")
	p.command.Env = p.program.environment()
	p.command.Stdout, p.command.Stderr = p.log, p.log
	if err := p.command.Start(); err != nil {
		return fmt.Errorf("start the portal: %w", err)
	}
	p.exited = make(chan struct{})
	go func(command *exec.Cmd, exited chan struct{}) {
		p.exit = command.Wait()
		close(exited)
	}(p.command, p.exited)
	return nil
}

func (p *process) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		if ready(ctx, p.URL) {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("the portal ended instead of serving: %s\n%s", p.command.ProcessState, p.log)
		case <-ctx.Done():
			return fmt.Errorf("the portal was not ready in %v\n%s", startTimeout, p.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func ready(ctx context.Context, site string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, site+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// stop ends the portal as a supervisor does, and says so when it does not end as the contract promises.
func (p *process) stop() error {
	select {
	case <-p.exited:
		return fmt.Errorf("the portal had ended by itself: %s\n%s", p.command.ProcessState, p.log)
	default:
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the portal: %w", err)
	}
	select {
	case <-p.exited:
		if p.exit != nil {
			return fmt.Errorf("the portal did not end well: %w\n%s", p.exit, p.log)
		}
		return nil
	case <-time.After(stopTimeout):
		p.kill()
		return errors.New("the portal did not stop within 10 s of SIGTERM")
	}
}

// pause stops the portal in the middle of a test, to be resumed.
func (p *process) pause(t *testing.T) {
	t.Helper()
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
}

func (p *process) resume(t *testing.T) {
	t.Helper()
	if err := p.run(); err != nil {
		t.Fatal(err)
	}
	if err := p.awaitReady(); err != nil {
		t.Fatal(err)
	}
}

func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.exited
}

// operator runs one of the binary's own commands against the portal's database and returns what it printed.
func (p *process) operator(input string, arguments ...string) (string, error) {
	command := exec.Command(p.program.binary, arguments...)
	command.Env = p.program.environment()
	command.Stdin = strings.NewReader(input)
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("portal %s: %w: %s", strings.Join(arguments, " "), err, problems.String())
	}
	return strings.TrimSpace(string(output)), nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// logBook collects what a process says; it may be read while the process writes.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
