package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
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
	stopPromise  = 10 * time.Second // the contract's
	testSecret   = "PORTAL_SECRET=0123456789abcdef0123456789abcdef"
	anyPort      = "PORTAL_ADDR=127.0.0.1:0"
)

// portalCommand is the portal as a process with this environment and no other, in an empty directory of its own.
func portalCommand(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, args...)
	command.Dir = t.TempDir()
	command.Env = append([]string{actAsPortal + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	return command
}

// result is what a finished process left.
type result struct {
	status         int
	stdout, stderr string
}

// portal runs a command to its end.
func portal(t *testing.T, env []string, stdin string, args ...string) result {
	t.Helper()
	command := portalCommand(t, env, args...)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := command.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// mustPortal runs a command that succeeds, and returns what it printed.
func mustPortal(t *testing.T, env []string, stdin string, args ...string) string {
	t.Helper()
	r := portal(t, env, stdin, args...)
	if r.status != 0 {
		t.Fatalf("portal %s: exit status %d: %s", strings.Join(args, " "), r.status, r.stderr)
	}
	return strings.TrimSuffix(r.stdout, "\n")
}

// failsWith checks that a command has failed with one line on standard error that contains each of the words, and
// with nothing on standard output.
func (r result) failsWith(t *testing.T, words ...string) {
	t.Helper()
	if r.status == 0 || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("want a failure with one line on standard error, got exit status %d, stdout %q, stderr %q", r.status, r.stdout, r.stderr)
	}
	for _, word := range words {
		if !strings.Contains(r.stderr, word) {
			t.Errorf("want %q in %q", word, r.stderr)
		}
	}
}

// instance is a portal that serves.
type instance struct {
	*exec.Cmd

	URL     string
	metrics string        // URL of the metrics listener
	exited  chan struct{} // closed at the process's end
	stdout  output
	stderr  output
}

// start serves and returns once the portal listens; the process goes with the test.
func start(t *testing.T, env []string, args ...string) *instance {
	t.Helper()
	i := launch(t, env, args...)
	i.await(t)
	return i
}

// launch starts a portal without waiting for it.
func launch(t *testing.T, env []string, args ...string) *instance {
	t.Helper()
	return begin(t, portalCommand(t, env, args...))
}

// begin starts a command that serves without waiting for it.
func begin(t *testing.T, command *exec.Cmd) *instance {
	t.Helper()
	i := &instance{Cmd: command, exited: make(chan struct{})}
	i.Stdout, i.Stderr = &i.stdout, &i.stderr
	if err := i.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = i.Wait()
		close(i.exited)
	}()
	t.Cleanup(i.kill)
	return i
}

// await waits until the portal is ready and reads its addresses from its log.
func (i *instance) await(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if i.readAddresses(); i.URL != "" && status(i.URL+"/readyz") == http.StatusOK {
			return
		}
		select {
		case <-i.exited:
			t.Fatalf("the portal ended instead of serving: %s", i.stderr.String())
		default:
		}
	}
	t.Fatalf("the portal was not ready in %s: %s", startTimeout, i.stderr.String())
}

func (i *instance) readAddresses() {
	lines := bufio.NewScanner(strings.NewReader(i.stderr.String()))
	for lines.Scan() {
		var line struct{ Msg, Server, Address string }
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Msg != "listening" {
			continue
		}
		switch line.Server {
		case "portal":
			i.URL = "http://" + line.Address
		case "metrics":
			i.metrics = "http://" + line.Address
		}
	}
}

// stop asks for a graceful stop and checks that it is one.
func (i *instance) stop(t *testing.T) {
	t.Helper()
	i.signal(t, syscall.SIGTERM)
	i.stopsWell(t)
}

func (i *instance) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := i.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// stopsWell waits for the end of a portal that was asked to stop.
func (i *instance) stopsWell(t *testing.T) {
	t.Helper()
	select {
	case <-i.exited:
		if code := i.ProcessState.ExitCode(); code != 0 {
			t.Errorf("a graceful stop exits 0, got %d: %s", code, i.stderr.String())
		}
	case <-time.After(stopPromise):
		t.Errorf("the portal did not stop within %s: %s", stopPromise, i.stderr.String())
	}
}

func (i *instance) kill() {
	_ = i.Process.Kill()
	<-i.exited
}

// status is the answer to a GET, 0 if there is none.
func status(url string) int {
	response, err := http.Get(url)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// output collects what a process writes; it may be read meanwhile.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
