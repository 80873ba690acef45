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
	"portal/models/modelstest/livekitserver"
)

// widgetSite is a customer's site with the widget page and one of the backends.
type widgetSite struct {
	runningExample

	customer customer
	portal   *visitor // signed in to the portal
	agentID  string
	key      string
}

// startWidget starts a customer's site with this backend and LiveKit server.
func startWidget(t *testing.T, portal *process, backend exampleServer, liveKit *url.URL) widgetSite {
	t.Helper()
	c := portal.newCustomer(t)
	agentID := c.newAgent(t, "Front desk")
	v := visit(t, c.at.URL)
	v.setCookies(t, c.session(t))
	key := pages.OpenKeys(v.Tab).Add("widget")
	integrate := pages.OpenIntegrate(v.Tab)
	backend.env = []string{"LIVEKIT_URL=" + liveKit.String(), "BEHIND_PROXY=1"}
	running := backend.start(t, integrate.File(backend.file, backend.name), key)
	if err := os.WriteFile(filepath.Join(running.folder, "widget.html"), []byte(integrate.File("widget.html", "Widget page")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(theRun.root, "node_modules"), filepath.Join(running.folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return widgetSite{running, c, v, agentID, key}
}

// portalWith starts a portal with this LiveKit server.
func portalWith(t *testing.T, server *url.URL, extra ...string) *process {
	t.Helper()
	return ownPortal(t, settings{extra: append(liveKitSettings(&livekitserver.Server{URL: server}), extra...)})
}

// revokeKey revokes the site's key with the operator's command.
func (s widgetSite) revokeKey(t *testing.T) {
	t.Helper()
	if _, err := s.customer.at.operator(s.key, "key", "revoke", "--key", "-"); err != nil {
		t.Fatal(err)
	}
}

// useUpTokens requests tokens until the backend refuses more of them for at least ten seconds.
func (s widgetSite) useUpTokens(t *testing.T) {
	t.Helper()
	for range 3000 {
		got := askBackend(t, s.runningExample, http.MethodPost, "/token", "Origin: "+s.site)
		if seconds, _ := strconv.Atoi(got.header.Get("Retry-After")); got.status == http.StatusTooManyRequests && seconds > 10 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the backend does not limit the tokens")
}

// visit opens a tab on the site. The visitor's network and microphone may fail.
func (s widgetSite) visit(t *testing.T, profiles ...profile) *visitor {
	t.Helper()
	v := visit(t, s.site, append(profiles, withoutMotion)...)
	v.allow(brokenConnections)
	return v
}

// brokenConnections matches the messages of the browser and of livekit-client about connections.
const brokenConnections = `Failed to load resource|WebSocket connection to|net::ERR_|/livekit-client\.js\)`

// silentServer returns the URL of a LiveKit server that accepts connections and sends nothing, and
// a function that stops it.
func silentServer(t *testing.T) (server *url.URL, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop = func() { _ = listener.Close() }
	t.Cleanup(stop)
	return &url.URL{Scheme: "ws", Host: listener.Addr().String()}, stop
}

func TestTheWidgetTalks(t *testing.T) {
	t.Parallel()
	server := startLiveKit(t)
	echo := startEcho(t, server)
	site := startWidget(t, portalWith(t, server.URL), referenceBackends[0], server.URL)
	v := site.visit(t, withMicrophone)
	v.addInitScript(t, shortTokens(2))
	w := pages.OpenWidget(v.Tab)
	w.TabTo("Tab", "button", "Talk")
	w.Press("Enter")
	w.ExpectStatusSaying(`You are in the call`)
	w.ExpectLevel()
	echo.expectAudio(site.agentID, 50)
	w.ExpectVoice()
	w.ExpectTokens(3) // the call goes on with new tokens
	w.ExpectStatusSaying(`You are in the call`)
	w.Press("Space")
	w.ExpectStatusSaying(`The call has ended`)
	w.ExpectIdle()

	w.Talk()
	w.ExpectStatusSaying(`You are in the call`)
	site.revokeKey(t)
	w.AwaitEnd()
	w.ExpectAlertSaying(`can no longer start calls`)
	w.ExpectIdle()
}

// The server never answers, so the page stays in the call while it connects.
func TestTheWidgetRenewsItsToken(t *testing.T) {
	t.Parallel()
	for i, backend := range referenceBackends {
		t.Run(backend.name, func(t *testing.T) {
			t.Parallel()
			server, _ := silentServer(t)
			site := startWidget(t, portalWith(t, server), backend, server)
			v := site.visit(t, withMicrophone)
			v.addInitScript(t, shortTokens(9))
			w := pages.OpenWidget(v.Tab)
			w.Talk()
			w.ExpectCalling()
			w.ExpectTokens(2)
			want := `can no longer start calls`
			if i == 0 {
				site.revokeKey(t)
			} else {
				pages.OpenAgents(site.portal.Tab).Remove("Front desk")
				want = `no longer available`
			}
			w.ExpectAlertSaying(want)
			w.ExpectIdle()
		})
	}
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
