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

	"github.com/coder/websocket"

	"portal/models/modelstest"
)

const voiceRuntime = guideFiles + "runtime.go.txt"

func TestVoiceRuntimeOfTheGuideBehindNginx(t *testing.T) {
	t.Parallel()
	runtime := startVoiceRuntime(t, buildProgram(t, voiceRuntime, nil))
	g := newGateway(t, (*gateway).startNginx, guideFiles+"nginx.conf", func(*testing.T) string { return runtime })
	token := g.portal.token(t, g.account.secret, g.agentID)
	conn, dialed := g.dial(token)
	if dialed != http.StatusSwitchingProtocols {
		t.Fatalf("status %d", dialed)
	}
	if got := agentOfCall(t, conn); got != g.agentID.String() {
		t.Errorf("the call is with %s, want %s", got, g.agentID)
	}
	g.Get("/connect?access_token=" + token).Is(http.StatusUpgradeRequired)
	if got := status("http://" + runtime + "/connect?access_token=" + token); got != http.StatusUnauthorized {
		t.Errorf("without the gateway: %d", got)
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
	program := buildProgram(t, voiceRuntime, nil)
	t.Run("to the pages that may connect", func(t *testing.T) {
		t.Parallel()
		closed := startVoiceRuntime(t, program)
		open := startVoiceRuntime(t, program, "ALLOWED_ORIGINS=https://shop.example.com,https://www.example.com")
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
		runtime := startVoiceRuntime(t, buildProgram(t, voiceRuntime, map[string]string{"1000": "1"}))
		first, _ := dial(t, runtime, "")
		if _, got := dial(t, runtime, ""); got != http.StatusServiceUnavailable {
			t.Errorf("beyond the limit: status %d", got)
		}
		agentOfCall(t, first) // ends it
		modelstest.Eventually(t, "the end of the first call makes room", func() bool {
			_, got := dial(t, runtime, "")
			return got == http.StatusSwitchingProtocols
		})
	})
	for name, test := range map[string]struct {
		program string
		talk    func(*websocket.Conn) error
	}{
		"in the size of messages": {program, func(conn *websocket.Conn) error {
			return conn.Write(t.Context(), websocket.MessageBinary, make([]byte, 64<<10+1))
		}},
		"in silence": {buildProgram(t, voiceRuntime, map[string]string{"time.Minute": "time.Second"}), nil},
		"in time": {buildProgram(t, voiceRuntime, map[string]string{"time.Hour": "time.Second"}), func(conn *websocket.Conn) error {
			return conn.Write(t.Context(), websocket.MessageBinary, []byte("audio"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, _ := dial(t, startVoiceRuntime(t, test.program), "")
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

// buildProgram builds a Go program of the guides after these replacements and returns its path.
func buildProgram(t *testing.T, source string, replacements map[string]string) (program string) {
	t.Helper()
	code := readFile(t, source)
	for old := range replacements {
		if strings.Count(code, old) != 1 {
			t.Fatalf("%s does not have %q once", source, old)
		}
	}
	program = filepath.Join(t.TempDir(), "program")
	modelstest.Must(t, os.WriteFile(program+".go", []byte(replaceAll(code, replacements)), 0o600))
	// Our go.mod has its packages.
	if output, err := exec.Command("go", "build", "-o", program, program+".go").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return program
}

// startVoiceRuntime starts the runtime of the guide and returns its address.
func startVoiceRuntime(t *testing.T, program string, env ...string) (address string) {
	t.Helper()
	address = freeAddress(t)
	command := exec.Command(program)
	command.Env = append([]string{"PORT=" + address[strings.LastIndex(address, ":")+1:]}, env...)
	runProgram(t, command, func(context.Context) error {
		if got := status("http://" + address + "/connect"); got != http.StatusUnauthorized {
			return fmt.Errorf("status %d", got)
		}
		return nil
	})
	return address
}
