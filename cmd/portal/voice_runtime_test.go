package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

func TestVoiceRuntimeOfTheGuideBehindNginx(t *testing.T) {
	t.Parallel()
	var runtime string
	g := newGateway(t, (*gateway).startNginx, gatewayFiles+"nginx.conf", func(t *testing.T, _ *instance) string {
		t.Helper()
		runtime = startVoiceRuntime(t, nil)
		return runtime
	})
	token := g.portal.token(t, g.account.secret, g.agentID)
	conn, dialed := g.dial(token)
	if dialed != http.StatusSwitchingProtocols {
		t.Fatalf("status %d", dialed)
	}
	if got := agentOfCall(t, conn); got != g.agentID.String() {
		t.Errorf("the call is with %s, want %s", got, g.agentID)
	}
	for path, want := range map[string]int{
		"/connect?access_token=" + token: http.StatusUpgradeRequired, "/connect": http.StatusUnauthorized, "/connect?access_token=x": http.StatusUnauthorized,
	} {
		if a := g.Send(http.MethodGet, path, "", spoofed...); a.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", strings.ReplaceAll(path, token, "TOKEN"), a.StatusCode, a.Body, want)
		}
	}
	got := status("http://" + runtime + "/connect?access_token=" + token)
	if got != http.StatusUnauthorized {
		t.Errorf("without the gateway: %d", got)
	}
	modelstest.Value(g.store.Keys.Revoke(t.Context(), g.account.ID, g.account.key.ID, models.Operator()))(t)
	if _, dialed := g.dial(token); dialed != http.StatusUnauthorized {
		t.Errorf("with a revoked key: %d", dialed)
	}
}

func TestVoiceRuntimeOfTheGuideLimitsCalls(t *testing.T) {
	t.Parallel()
	// dial opens a call as the gateway does.
	dial := func(t *testing.T, runtime, origin string) (*websocket.Conn, int) {
		t.Helper()
		header := http.Header{"X-Agent-Id": {"1"}}
		if origin != "" {
			header.Set("Origin", origin)
		}
		address, options := "ws://"+runtime+"/connect", &websocket.DialOptions{HTTPHeader: header}
		conn, response, err := websocket.Dial(t.Context(), address, options) //nolint:bodyclose // Dial closes it
		if response == nil {
			t.Fatal(err)
		}
		if err == nil {
			t.Cleanup(func() { _ = conn.CloseNow() })
		}
		return conn, response.StatusCode
	}
	t.Run("to the pages that may connect", func(t *testing.T) {
		t.Parallel()
		closed := startVoiceRuntime(t, nil)
		origins := "https://shop.example.com,https://www.example.com"
		open := startVoiceRuntime(t, nil, "ALLOWED_ORIGINS="+origins)
		for _, call := range []struct {
			runtime, origin string
			want            int
		}{
			{open, "https://www.example.com", http.StatusSwitchingProtocols},
			{open, "https://shop.example.com", http.StatusSwitchingProtocols},
			{open, "https://evil.example", http.StatusForbidden},
			{open, "http://www.example.com", http.StatusForbidden},
			{open, "null", http.StatusForbidden},
			{closed, "null", http.StatusForbidden},
			{closed, "https://www.example.com", http.StatusForbidden},
		} {
			if _, got := dial(t, call.runtime, call.origin); got != call.want {
				t.Errorf("%s: status %d, want %d", call.origin, got, call.want)
			}
		}
	})
	t.Run("in number", func(t *testing.T) {
		t.Parallel()
		runtime := startVoiceRuntime(t, map[string]string{"1000": "1"})
		first, _ := dial(t, runtime, "")
		if _, got := dial(t, runtime, ""); got != http.StatusServiceUnavailable {
			t.Errorf("beyond the limit: status %d", got)
		}
		agentOfCall(t, first) // ends it
		for deadline := time.Now().Add(startTimeout); ; time.Sleep(10 * time.Millisecond) {
			if _, got := dial(t, runtime, ""); got == http.StatusSwitchingProtocols {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("after the end of the first call: status %d", got)
			}
		}
	})
	for name, test := range map[string]struct {
		replacements map[string]string
		talk         func(*websocket.Conn) error
	}{
		"in the size of messages": {nil, func(conn *websocket.Conn) error {
			return conn.Write(t.Context(), websocket.MessageBinary, make([]byte, 64<<10+1))
		}},
		"in silence": {map[string]string{"time.Minute": "time.Second"}, nil},
		"in time": {map[string]string{"time.Hour": "time.Second"}, func(conn *websocket.Conn) error {
			return conn.Write(t.Context(), websocket.MessageBinary, []byte("audio"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, _ := dial(t, startVoiceRuntime(t, test.replacements), "")
			ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
			defer cancel()
			_, _, err := conn.Read(ctx)
			for err == nil {
				if test.talk != nil {
					_ = test.talk(conn) // the runtime may have ended the call
				}
				_, _, err = conn.Read(ctx)
			}
			if ctx.Err() != nil {
				t.Error("the call goes on")
			}
		})
	}
}

// agentOfCall returns the agent of a call, checks that the runtime sends back audio, and ends it.
func agentOfCall(t *testing.T, conn *websocket.Conn) string {
	t.Helper()
	defer func() { _ = conn.CloseNow() }()
	_, greeting, err := conn.Read(t.Context())
	modelstest.Must(t, err)
	audio := strings.Repeat("\x00\x7f", 480) // 20 ms
	modelstest.Must(t, conn.Write(t.Context(), websocket.MessageBinary, []byte(audio)))
	if kind, got, err := conn.Read(t.Context()); err != nil || kind != websocket.MessageBinary || string(got) != audio {
		t.Errorf("the runtime sends back %d bytes, error %v", len(got), err)
	}
	return strings.TrimPrefix(string(greeting), "agent ")
}

// buildSnippet builds a Go program of the guides after these replacements and returns its path.
func buildSnippet(t *testing.T, name string, replacements map[string]string) string {
	t.Helper()
	code := modelstest.Value(os.ReadFile(filepath.Join("..", "..", "templates", "documentation", "snippets", name+".go.txt")))(t)
	for old := range replacements {
		if strings.Count(string(code), old) != 1 {
			t.Fatalf("%s does not have %q once", name, old)
		}
	}
	program := filepath.Join(t.TempDir(), name)
	modelstest.Must(t, os.WriteFile(program+".go", []byte(replaceAll(string(code), replacements)), 0o600))
	// Our go.mod has its packages.
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, program+".go").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return program
}

// startVoiceRuntime starts the runtime of the guide after these replacements and returns its
// address.
func startVoiceRuntime(t *testing.T, replacements map[string]string, env ...string) (address string) {
	t.Helper()
	address = freeAddress(t)
	log := &modelstest.LogBuffer{}
	command := exec.Command(buildSnippet(t, "runtime", replacements))
	command.Env = append([]string{"PORT=" + address[strings.LastIndex(address, ":")+1:]}, env...)
	command.Stdout, command.Stderr = log, log
	child := modelstest.Value(subprocess.Start(command))(t)
	t.Cleanup(child.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := child.AwaitReady(ctx, func(context.Context) error {
		if got := status("http://" + address + "/connect"); got != http.StatusUnauthorized {
			return fmt.Errorf("status %d", got)
		}
		return nil
	}); err != nil {
		t.Fatalf("%v: %s", err, log)
	}
	return address
}
