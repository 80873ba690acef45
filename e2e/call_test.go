package e2e

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"portal/e2e/pages"
	"portal/models/modelstest"
	"portal/models/modelstest/livekitserver"
	"portal/models/modelstest/subprocess"
)

// widgetSite is a customer's site with the widget page and one of the backends.
type widgetSite struct {
	runningExample

	customer customer
	portal   *process
	agentID  string
	key      string
}

// startWidget starts a customer's site with this backend and LiveKit server.
func startWidget(t *testing.T, portal *process, backend exampleServer, liveKit *url.URL) widgetSite {
	t.Helper()
	c := portal.signedIn(t)
	agentID, key := c.newAgent(t, "Front desk"), c.newKey(t, "widget")
	backend.env = append(backend.env, "LIVEKIT_URL="+liveKit.String(), "BEHIND_PROXY=1")
	running := backend.start(t, c.example("/integrate", backend.name), key)
	page := []byte(c.example("/integrate", "Widget page"))
	modelstest.Must(t, os.WriteFile(filepath.Join(running.folder, "widget.html"), page, 0o600))
	modelstest.Must(t, os.Symlink(filepath.Join(root, "node_modules"), filepath.Join(running.folder, "node_modules")))
	return widgetSite{runningExample: running, customer: c, portal: portal, agentID: agentID, key: key}
}

// portalWith starts a portal with this LiveKit server.
func portalWith(t *testing.T, server *url.URL, extra ...string) *process {
	t.Helper()
	return ownPortal(t, settings{extra: append(liveKitSettings(&livekitserver.Server{URL: server}), extra...)})
}

// useUpTokens requests tokens until the backend refuses more of them for at least ten seconds.
func (s widgetSite) useUpTokens(t *testing.T) {
	t.Helper()
	for range 3000 {
		got := modelstest.NewVisitor(t, s.site).Post("/token", nil, "Origin: "+s.site)
		if seconds, _ := strconv.Atoi(got.Header.Get("Retry-After")); got.StatusCode == http.StatusTooManyRequests && seconds > 10 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the backend does not limit the tokens")
}

// visit opens a tab on the site. The visitor's network and microphone may fail.
func (s widgetSite) visit(t *testing.T, profiles ...profile) *visitor {
	t.Helper()
	v := visit(t, s.site, profiles...)
	v.allow(brokenConnections)
	return v
}

// brokenConnections matches the messages of the browser and of livekit-client about connections.
const brokenConnections = `Failed to load resource|WebSocket connection to|net::ERR_|/livekit-client\.js\)`

// silentServer returns the URL of a LiveKit server that accepts connections and sends nothing, and
// a function that stops it.
func silentServer(t *testing.T) (server *url.URL, stop func()) {
	t.Helper()
	listener := modelstest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	stop = func() { _ = listener.Close() }
	t.Cleanup(stop)
	return &url.URL{Scheme: "ws", Host: listener.Addr().String()}, stop
}

// With LiveKit's webhooks, calls have an exact start and end, and the reason.
func TestTheWidgetTalks(t *testing.T) {
	t.Parallel()
	address := modelstest.Value(subprocess.FreeAddress())(t)
	server := startLiveKit(t, "http://"+address+"/livekit/webhook")
	echo := startEcho(t, server)
	portal := ownPortal(t, settings{address: address, extra: append(liveKitSettings(server), "PORTAL_LIVEKIT_AGENT_NAME=echo")})
	backend := referenceBackends[1]
	backend.env = []string{guest}
	site := startWidget(t, portal, backend, server.URL)
	db := modelstest.OpenDatabase(t, portal.settings.databaseURL)
	expect := func(what, where string, want int64) {
		t.Helper()
		modelstest.Eventually(t, what, func() bool {
			n, err := db.NewSelect().Table("calls").Where(where).Count(t.Context())
			return err == nil && n == want
		})
	}
	v := site.visit(t, withMicrophone)
	v.addInitScript(t, shortTokens(2))
	w := pages.OpenWidget(v.Tab)
	w.TabTo("Tab", "button", "Talk")
	w.Press("Enter")
	w.ExpectStatus(`Hello, María. You are in the call`)
	echo.expectVisitor("María")
	w.ExpectLevel()
	echo.expectAudio(site.agentID, 50)
	w.ExpectVoice()
	w.ExpectTokens(3) // the call goes on with new tokens
	w.ExpectStatus(`You are in the call`)
	expect("the call has begun", "ended_at IS NULL AND exact AND user_id = 'customer-7'", 1)
	inspect(t, v.Tab).check(t, "the widget page in a call")
	w.Press("Space")
	w.ExpectStatus(`The call has ended`)
	w.ExpectIdle()
	expect("the call has ended", "end_reason = 'visitor_left' AND exact", 1)
	expect("a visitor may come back", "NOT final", 1)

	w.Talk()
	w.ExpectStatus(`You are in the call`)
	expect("another call has begun", "ended_at IS NULL AND exact", 1)
	site.customer.revokeOnly(t)
	w.AwaitEnd()
	w.ExpectAlert(`can no longer start calls`)
	w.ExpectIdle()
	expect("LiveKit has finished the first room", "end_reason = 'visitor_left' AND final", 1)
	expect("the call has ended by the revocation", "end_reason = 'key_revoked' AND exact AND final", 1)
}

// guest is a setting of a backend: the user in the tokens of visitors without a session.
const guest = `SESSIONS={"": {"id": "customer-7", "name": "María"}}`

// The page runs LiveKit's own code. The options ask for what a visitor must not choose.
func TestLiveKitsTokenSourceCallsThroughEachBackend(t *testing.T) {
	t.Parallel()
	server := startLiveKit(t)
	portal := portalWith(t, server.URL, "PORTAL_LIVEKIT_AGENT_NAME=echo")
	for _, backend := range referenceBackends {
		t.Run(backend.name, func(t *testing.T) {
			backend.env = []string{guest}
			site := startWidget(t, portal, backend, server.URL)
			v := site.visit(t)
			pages.OpenWidget(v.Tab)
			for _, options := range []string{`{}`, `{
				roomName: 'lobby', participantName: 'Mallory', participantIdentity: 'admin', participantMetadata: 'x',
				participantAttributes: { agentId: 'x', userId: 'admin' }, agentName: 'other', agentMetadata: 'x',
			}`} {
				joined := v.Evaluate(`async () => {
					const { Room, TokenSource } = await import('/livekit-client.js')
					const { serverUrl, participantToken } = await TokenSource.endpoint('/token').fetch(` + options + `)
					const room = new Room()
					await room.connect(serverUrl, participantToken)
					const { identity, name, metadata, attributes, permissions } = room.localParticipant
					const joined = [name, metadata, attributes.agentId, attributes.userId, identity.length, permissions.canUpdateMetadata, room.name.slice(0, 36)]
					await room.disconnect()
					return joined.join()
				}`)
				if want := "María,," + site.agentID + ",customer-7,36,false," + site.agentID; joined != want {
					t.Errorf("%s: joined as %q, want %q", options, joined, want)
				}
			}
		})
	}
}

// The server never answers, so the page stays in the call while it connects.
func TestTheWidgetRenewsItsToken(t *testing.T) {
	t.Parallel()
	server, _ := silentServer(t)
	site := startWidget(t, portalWith(t, server), referenceBackends[1], server)
	v := site.visit(t, withMicrophone)
	v.addInitScript(t, shortTokens(9))
	w := pages.OpenWidget(v.Tab)
	w.Talk()
	w.ExpectCalling()
	w.ExpectTokens(2)
	site.customer.removeAgent(t, site.agentID)
	w.ExpectAlert(`no longer available`)
	w.ExpectIdle()
}

// shortTokens returns a script that sets the life of the page's first tokens to two seconds, and
// records all tokens. The backend allows ten a minute.
func shortTokens(count int) string {
	return `
	window.tokens = []
	const originalFetch = window.fetch
	window.fetch = async (resource, options) => {
		const response = await originalFetch(resource, options)
		if (resource !== '/token' || !response.ok) return response
		const body = await response.json()
		window.tokens.push(body.access_token)
		if (window.tokens.length <= ` + strconv.Itoa(count) + `) body.expires_in = 2
		return new Response(JSON.stringify(body), response)
	}`
}
