package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"

	"portal/models/modelstest"
)

// callPage is a customer's page with a voice widget in a visitor's browser.
type callPage struct {
	t       *testing.T
	visitor *visitor
	agentID string
	access  access // of the last request

	mu       sync.Mutex
	received []string // bodies and WebSocket messages
}

// access is the LiveKit part of a token response.
type access struct {
	URL   string `json:"server_url"`
	Token string `json:"participant_token"`
}

// callScript has the functions that the tests call.
const callScript = `<!doctype html><html lang="en"><title>Talk</title><script src="/livekit-client.js"></script><script>
let room
const call = { ended: '' }
async function join({ server_url, participant_token }) {
  call.ended = ''
  room = new LivekitClient.Room()
  room.on('disconnected', (reason) => { call.ended = LivekitClient.DisconnectReason[reason] || 'unknown' })
  try {
    await room.connect(server_url, participant_token)
    await room.localParticipant.setMicrophoneEnabled(true)
  } catch (error) {
    if (!call.ended) throw error
  }
}
async function received() {
  let packets = 0
  for (const participant of room.remoteParticipants.values()) {
    for (const { track } of participant.audioTrackPublications.values()) {
      const report = track ? await track.getRTCStatsReport() : undefined
      report?.forEach((stat) => { if (stat.type === 'inbound-rtp') packets += stat.packetsReceived })
    }
  }
  return packets
}
</script>`

// newCallPage serves the page and opens it in a browser of its own.
func newCallPage(t *testing.T, c customer, key, agentID string) *callPage {
	t.Helper()
	p := &callPage{t: t, agentID: agentID}
	library := filepath.Join(theRun.root, "node_modules", "livekit-client", "dist", "livekit-client.umd.js")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(callScript)) })
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /livekit-client.js", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, library) })
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, c.requestToken(key, agentID).Body)
	})
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	p.visitor = visit(t, site.URL, withMicrophone)
	p.visitor.allow(".") // LiveKit's library logs the end of a call
	p.visitor.context.OnResponse(func(r playwright.Response) {
		go func() {
			body, _ := r.Text()
			p.note(body)
		}()
	})
	p.visitor.Page.OnWebSocket(func(socket playwright.WebSocket) {
		socket.OnFrameReceived(func(frame []byte) { p.note(string(frame)) })
	})
	p.visitor.Open("/")
	return p
}

func (p *callPage) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.received = append(p.received, text)
}

// requestAccess requests a token from the customer's backend.
func (p *callPage) requestAccess() access {
	p.t.Helper()
	p.access = access{}
	p.evaluateInto(&p.access, `async () => (await (await fetch('/token', { method: 'POST' })).json()).livekit`)
	if p.access.URL == "" || p.access.Token == "" {
		p.t.Fatalf("no access to LiveKit: %+v", p.access)
	}
	return p.access
}

// join joins the room with the microphone. It returns too when the call ends meanwhile.
func (p *callPage) join(a access) {
	p.t.Helper()
	if _, err := p.visitor.Page.Evaluate("join", map[string]any{"server_url": a.URL, "participant_token": a.Token}); err != nil {
		p.t.Fatalf("join the call: %v", err)
	}
}

// attempt returns "done" if the promise of an expression is resolved, and otherwise why not.
func (p *callPage) attempt(expression string) (outcome string) {
	p.t.Helper()
	p.evaluateInto(&outcome, "() => "+expression+".then(() => 'done', (error) => String(error))")
	return outcome
}

// expectAudio waits until the browser has received this many packets.
func (p *callPage) expectAudio(packets int) {
	p.t.Helper()
	got := 0
	eventually(p.t, "audio comes back", func() bool {
		p.evaluateInto(&got, "received")
		return got >= packets
	})
	p.t.Logf("the browser received %d packets", got)
}

// expectEnd waits until the call has ended, and returns LiveKit's reason.
func (p *callPage) expectEnd() (reason string) {
	p.t.Helper()
	eventually(p.t, "the call ends", func() bool {
		p.evaluateInto(&reason, "() => call.ended")
		return reason != ""
	})
	return reason
}

// expectNothingReceived checks that the browser has received none of these texts.
func (p *callPage) expectNothingReceived(texts ...string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	all := strings.Join(p.received, "\n")
	if !strings.Contains(all, p.access.Token) || !strings.Contains(all, p.agentID) {
		p.t.Errorf("the record of %d messages is incomplete", len(p.received))
	}
	for _, text := range texts {
		if strings.Contains(all, text) {
			p.t.Error("the browser received a secret")
		}
	}
}

func (p *callPage) evaluateInto(into any, expression string) {
	p.t.Helper()
	result, err := p.visitor.Page.Evaluate(expression)
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	encoded, err := json.Marshal(result)
	modelstest.Must(p.t, err)
	if err := json.Unmarshal(encoded, into); err != nil {
		p.t.Fatalf("%s returned %s: %v", expression, encoded, err)
	}
}

// eventually waits until holds returns true.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}
