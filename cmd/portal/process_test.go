package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

const (
	startTimeout = 2 * time.Minute
	// The phases of a stop take 10 s, and a busy machine is slow.
	exitTimeout = 30 * time.Second
	testSecret  = "PORTAL_SECRET=0123456789abcdef0123456789abcdef"
	anyPort     = "PORTAL_ADDR=127.0.0.1:0"
)

// portalCommand returns a command that runs the portal in a new directory, with only this
// environment.
func portalCommand(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	binary := modelstest.Value(os.Executable())(t)
	command := exec.Command(binary, args...)
	command.Dir = t.TempDir()
	command.Env = append([]string{actAsPortal + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	return command
}

// result is the exit status and the output of a process.
type result struct {
	status         int
	stdout, stderr string
}

// portal runs a command and waits for it to exit.
func portal(t *testing.T, env []string, stdin string, args ...string) result {
	t.Helper()
	return waitFor(t, portalCommand(t, env, args...), stdin)
}

// waitFor runs a command with this input and waits for it to exit.
func waitFor(t *testing.T, command *exec.Cmd, stdin string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := command.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{status: command.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// mustPortal runs a command, which must succeed, and returns its standard output.
func mustPortal(t *testing.T, env []string, stdin string, args ...string) string {
	t.Helper()
	return mustRun(t, portalCommand(t, env, args...), stdin)
}

// mustRun is [mustPortal] with the command that runs the portal.
func mustRun(t *testing.T, command *exec.Cmd, stdin string) string {
	t.Helper()
	r := waitFor(t, command, stdin)
	if r.status != 0 {
		t.Fatalf("%s: exit status %d: %s", command, r.status, r.stderr)
	}
	return strings.TrimSuffix(r.stdout, "\n")
}

// failsWith checks that a command failed, wrote nothing to standard output, and wrote one line to
// standard error that contains each of the words.
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

// instance is a portal that runs as a process, and a visitor who has no session there.
type instance struct {
	*subprocess.Child
	*modelstest.Visitor // once it is ready

	metrics string // URL of the metrics listener
	stdout  modelstest.LogBuffer
	stderr  modelstest.LogBuffer
}

// start starts a portal, which is killed at the end of the test, and returns when it is ready.
func start(t *testing.T, env []string, args ...string) *instance {
	t.Helper()
	i := launch(t, env, args...)
	i.awaitReady(t)
	return i
}

// startBuilt is [start] with the built binary, because the test binary may have the race detector,
// which needs more memory.
func startBuilt(t *testing.T, env []string) *instance {
	t.Helper()
	command := portalCommand(t, env)
	command.Path = buildPortal(t)
	i := launchCommand(t, command)
	i.awaitReady(t)
	return i
}

// launch starts a portal and does not wait until it is ready.
func launch(t *testing.T, env []string, args ...string) *instance {
	t.Helper()
	return launchCommand(t, portalCommand(t, env, args...))
}

// launchCommand is [launch] with the command that runs the portal.
func launchCommand(t *testing.T, command *exec.Cmd) *instance {
	t.Helper()
	i := &instance{}
	command.Stdout, command.Stderr = &i.stdout, &i.stderr
	var err error
	if i.Child, err = subprocess.Start(command); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Kill)
	return i
}

// awaitReady waits until the portal is ready, and reads its addresses from its log.
func (i *instance) awaitReady(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	err := i.AwaitReady(ctx, func(ctx context.Context) error {
		i.Visitor = modelstest.NewVisitor(t, i.readAddresses())
		return subprocess.CheckOK(ctx, i.URL+"/readyz")
	})
	if err != nil {
		t.Fatalf("%v: %s", err, i.stderr.String())
	}
}

// runProgram starts another program, which is killed at the end of the test, and returns its output
// when it is ready.
func runProgram(t *testing.T, command *exec.Cmd, ready func(context.Context) error) *modelstest.LogBuffer {
	t.Helper()
	log := &modelstest.LogBuffer{}
	command.Stdout, command.Stderr = log, log
	child := modelstest.Value(subprocess.Start(command))(t)
	t.Cleanup(child.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := child.AwaitReady(ctx, ready); err != nil {
		t.Fatalf("%v: %s", err, log)
	}
	return log
}

// readAddresses reads the addresses of the listeners from the log.
func (i *instance) readAddresses() (url string) {
	lines := bufio.NewScanner(strings.NewReader(i.stderr.String()))
	for lines.Scan() {
		var line struct{ Msg, Server, Address string }
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Msg != "listening" {
			continue
		}
		switch line.Server {
		case "portal":
			url = "http://" + line.Address
		case "metrics":
			i.metrics = "http://" + line.Address
		}
	}
	return url
}

// signedIn returns a visitor with a session of the test's account.
func (i *instance) signedIn(t *testing.T) *modelstest.Visitor {
	t.Helper()
	v := modelstest.NewVisitor(t, i.URL)
	v.SignIn(testEmail, testPassword)
	return v
}

// revokeOnly revokes the only active key of a visitor's account.
func revokeOnly(v *modelstest.Visitor) {
	v.Post(v.Get("/api-keys").Find(`action="(/api-keys/[0-9a-f-]{36}/revocation)"`), nil).Is(http.StatusSeeOther)
}

// answers checks the status of a request with the key.
func (i *instance) answers(t *testing.T, key string, status int) {
	t.Helper()
	i.Get("/api/agents", modelstest.Bearer(key)).Is(status)
}

// accepts checks that the instance accepts the key.
func (i *instance) accepts(t *testing.T, key string) {
	t.Helper()
	i.answers(t, key, http.StatusOK)
}

// token exchanges an API key for a widget token.
func (i *instance) token(t *testing.T, key string, agentID uuid.UUID) string {
	t.Helper()
	return i.tokenWith(t, key, agentID, "")
}

// tokenWith requests a token with further fields, each after a comma.
func (i *instance) tokenWith(t *testing.T, key string, agentID uuid.UUID, fields string) string {
	t.Helper()
	response := i.PostJSON("/api/widget/token", `{"agentId":"`+agentID.String()+`"`+fields+`}`, modelstest.Bearer(key))
	return response.Is(http.StatusOK).Find(`"access_token":"([^"]+)"`)
}

// introspects checks that the instance accepts the token.
func (i *instance) introspects(t *testing.T, step, key, token string) {
	t.Helper()
	response := i.Post("/api/widget/introspect", url.Values{"token": {token}}, modelstest.Bearer(key))
	if !strings.Contains(response.Body, `"active":true`) {
		t.Errorf("%s: the token is refused: %s", step, response.Body)
	}
}

// stop stops the portal with SIGTERM, and checks that it exits with status 0 in time.
func (i *instance) stop(t *testing.T) {
	t.Helper()
	if err := i.Stop(exitTimeout); err != nil {
		t.Errorf("%v: %s", err, i.stderr.String())
	}
}

func (i *instance) signal(t *testing.T, s os.Signal) {
	t.Helper()
	modelstest.Must(t, i.Process.Signal(s))
}

// awaitExit waits for a portal to exit after a signal, with status 0 and in time.
func (i *instance) awaitExit(t *testing.T) {
	t.Helper()
	if err := i.AwaitExit(exitTimeout); err != nil {
		t.Errorf("%v: %s", err, i.stderr.String())
	}
}

// status returns the status of the response to a GET request, 0 without a response.
func status(url string) int {
	response, err := http.Get(url)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}
