package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"portal/models/modelstest"
	"portal/models/modelstest/livekitserver"
)

// startLiveKit starts a LiveKit server, which sends its events to these URLs, until the test ends.
func startLiveKit(t *testing.T, webhooks ...string) *livekitserver.Server {
	t.Helper()
	server := modelstest.Value(livekitserver.Start(t.Context(), webhooks...))(t)
	t.Cleanup(server.Stop)
	return server
}

// restartLiveKit starts a stopped server at its old address. Its rooms are gone.
func restartLiveKit(t *testing.T, stopped *livekitserver.Server) *livekitserver.Server {
	t.Helper()
	server := modelstest.Value(livekitserver.StartOn(t.Context(), modelstest.Value(strconv.Atoi(stopped.URL.Port()))(t)))(t)
	t.Cleanup(server.Stop)
	return server
}

// liveKitSettings are the settings of a portal with this server.
func liveKitSettings(server *livekitserver.Server) []string {
	return []string{
		"PORTAL_LIVEKIT_URL=" + server.URL.String(),
		"PORTAL_LIVEKIT_API_KEY=" + livekitserver.APIKey, "PORTAL_LIVEKIT_API_SECRET=" + livekitserver.APISecret,
	}
}

// echoAgent is the voice agent of e2e/echo, which joins every room and sends back what it hears.
type echoAgent struct {
	t       *testing.T
	process *os.Process
	events  chan echoEvent
}

type echoEvent struct {
	Event, Room string
	Packets     int
	From        map[string]string
	Visitor     string
}

// startEcho starts the agent until the test ends. The Makefile builds it.
func startEcho(t *testing.T, server *livekitserver.Server) *echoAgent {
	t.Helper()
	path := filepath.Join(root, "bin", "tools", "echo-agent")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("bin/tools/echo-agent is missing, run `make bin/tools/echo-agent`: %v", err)
	}
	command := exec.Command(path)
	command.Env = []string{
		"LIVEKIT_URL=" + server.URL.String(),
		"LIVEKIT_API_KEY=" + livekitserver.APIKey, "LIVEKIT_API_SECRET=" + livekitserver.APISecret,
	}
	command.Stderr = t.Output()
	output := modelstest.Value(command.StdoutPipe())(t)
	modelstest.Must(t, command.Start())
	// The buffer is larger than the number of events of a test, so that the agent never blocks.
	a := &echoAgent{t: t, process: command.Process, events: make(chan echoEvent, 10_000)}
	go func() {
		defer close(a.events)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			var event echoEvent
			if json.Unmarshal(lines.Bytes(), &event) == nil {
				a.events <- event
			}
		}
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return a
}

// stop ends the agent: it leaves its rooms on SIGTERM, and crashes on SIGKILL.
func (a *echoAgent) stop(signal os.Signal) {
	a.t.Helper()
	modelstest.Must(a.t, a.process.Signal(signal))
}

// expectAudio waits until the agent has received this many packets from a participant whose token
// is for agentID.
func (a *echoAgent) expectAudio(agentID string, packets int) {
	a.t.Helper()
	a.await("audio", func(e echoEvent) bool {
		return e.Event == "audio" && e.From["agentId"] == agentID && e.Packets >= packets
	})
}

// expectVisitor waits until the agent has joined a room, and checks the visitor's name in the
// metadata of its dispatch.
func (a *echoAgent) expectVisitor(name string) {
	a.t.Helper()
	joined := a.await("room", func(e echoEvent) bool { return e.Event == "joined" })
	if joined.Visitor != name {
		a.t.Errorf("the agent's dispatch names %q, want %q", joined.Visitor, name)
	}
}

// await waits for an event and returns it.
func (a *echoAgent) await(what string, wanted func(echoEvent) bool) echoEvent {
	a.t.Helper()
	for timeout := time.After(time.Minute); ; {
		select {
		case event, running := <-a.events:
			if !running {
				a.t.Fatal("the echo agent has stopped")
			}
			if wanted(event) {
				return event
			}
		case <-timeout:
			a.t.Fatalf("the echo agent reports no %s", what)
		}
	}
}
