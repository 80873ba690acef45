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

	"portal/models"
	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

func TestVoiceRuntimeOfTheGuideVerifiesTokens(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"EdDSA", "ES256"} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			s := startSigner(t, algorithm)
			address := startVoiceRuntime(t, s.instance,
				"ALLOWED_ORIGINS=https://shop.example.com,https://www.example.com")
			dial := func(token, origin string) (string, error) {
				conn, _, err := websocket.Dial(t.Context(), "ws://"+address+"/connect?access_token="+token, //nolint:bodyclose // Dial closes it
					&websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}, "X-Agent-Id": {"spoofed"}}})
				if err != nil {
					return "", err
				}
				return agentOfCall(t, conn), nil
			}
			s.check(t, "the runtime", func(token string) (string, error) {
				return dial(token, "https://www.example.com")
			})
			token := s.token(t, s.account.secret, s.agent.ID)
			if agentID, err := dial(token, "https://evil.example"); err == nil {
				t.Errorf("the runtime accepts another site's page, for agent %s", agentID)
			}
		})
	}
}

func TestVoiceRuntimeOfTheGuideBehindNginx(t *testing.T) {
	t.Parallel()
	var runtime string
	g := newGateway(t, (*gateway).startNginx, "nginx", func(t *testing.T, portal *instance) string {
		t.Helper()
		runtime = startVoiceRuntime(t, portal, "GATEWAY=1")
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
		if a := g.send(http.MethodGet, path, "", spoofed...); a.status != want {
			t.Errorf("%s: %d %s, want %d", strings.ReplaceAll(path, token, "TOKEN"), a.status, a.body, want)
		}
	}
	got := status("http://" + runtime + "/connect?access_token=" + token)
	if got != http.StatusUnauthorized {
		t.Errorf("without the gateway: %d", got)
	}
	if _, err := g.store.RevokeAPIKey(t.Context(), g.account.ID, g.account.key.ID, models.Operator()); err != nil {
		t.Fatal(err)
	}
	if _, dialed := g.dial(token); dialed != http.StatusUnauthorized {
		t.Errorf("with a revoked key: %d", dialed)
	}
}

// agentOfCall returns the agent of a call and checks that the runtime sends back audio.
func agentOfCall(t *testing.T, conn *websocket.Conn) string {
	t.Helper()
	defer func() { _ = conn.CloseNow() }()
	_, greeting, err := conn.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	audio := strings.Repeat("\x00\x7f", 480) // 20 ms
	if err := conn.Write(t.Context(), websocket.MessageBinary, []byte(audio)); err != nil {
		t.Fatal(err)
	}
	if kind, got, err := conn.Read(t.Context()); err != nil || kind != websocket.MessageBinary || string(got) != audio {
		t.Errorf("the runtime sends back %d bytes, error %v", len(got), err)
	}
	return strings.TrimPrefix(string(greeting), "agent ")
}

// startVoiceRuntime builds and starts the runtime of the guide, and returns its address.
func startVoiceRuntime(t *testing.T, portal *instance, env ...string) (address string) {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("..", "..", "templates", "documentation", "snippets", "runtime.go.txt"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	source, program := filepath.Join(folder, "runtime.go"), filepath.Join(folder, "runtime")
	if err := os.WriteFile(source, []byte(strings.ReplaceAll(string(code), "BASE_URL", portal.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	// Our go.mod has its packages.
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	address = freeAddress(t)
	log := &modelstest.LogBuffer{}
	command := exec.Command(program)
	command.Env = append([]string{"PORT=" + address[strings.LastIndex(address, ":")+1:]}, env...)
	command.Stdout, command.Stderr = log, log
	child, err := subprocess.Start(command)
	if err != nil {
		t.Fatal(err)
	}
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
