package e2e

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

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

// startWidget starts a customer's site on a portal with this LiveKit server.
func startWidget(t *testing.T, backend exampleServer, server *url.URL) widgetSite {
	t.Helper()
	c := ownPortal(t, settings{extra: liveKitSettings(&livekitserver.Server{URL: server})}).newCustomer(t)
	agentID := c.newAgent(t, "Front desk")
	v := visit(t, c.at.URL)
	v.setCookies(t, c.session(t))
	key := pages.OpenKeys(v.Tab).Add("widget")
	integrate := pages.OpenIntegrate(v.Tab)
	backend.env = []string{"LIVEKIT_URL=" + server.String(), "BEHIND_PROXY=1"}
	running := backend.start(t, integrate.File(backend.file, backend.name), key)
	if err := os.WriteFile(filepath.Join(running.folder, "widget.html"), []byte(integrate.File("widget.html", "Widget page")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(theRun.root, "node_modules"), filepath.Join(running.folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return widgetSite{running, c, v, agentID, key}
}

// silentServer returns the URL of a LiveKit server that accepts connections and sends nothing.
func silentServer(t *testing.T) *url.URL {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return &url.URL{Scheme: "ws", Host: listener.Addr().String()}
}

// brokenConnections matches the messages of the browser and of livekit-client about connections.
const brokenConnections = `Failed to load resource|WebSocket connection to|net::ERR_|Abort connection attempt`

func TestTheWidgetSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	site := startWidget(t, referenceBackends[1], silentServer(t))
	fails := func(t *testing.T, v *visitor, want string) {
		t.Helper()
		w := pages.OpenWidget(v.Tab)
		w.Talk()
		w.ExpectAlertSaying(want)
		w.ExpectIdle()
		w.ExpectSilence()
	}
	for name, want := range map[string]string{
		"NotAllowedError": `The microphone is blocked`, "NotFoundError": `No microphone was found`, "NotReadableError": `Another program uses the microphone`,
	} {
		v := visit(t, site.site)
		v.addInitScript(t, `navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('', '`+name+`') }`)
		fails(t, v, want)
	}

	v := visit(t, site.site, withoutMotion)
	v.allow(brokenConnections)
	w := pages.OpenWidget(v.Tab)
	w.Talk()
	w.ExpectStatusSaying(`Connecting`)
	w.ExpectCalling()
	w.ExpectLevel()
	w.Press("Space") // ends the call
	w.ExpectStatusSaying(`The call has ended`)
	w.ExpectIdle()
	w.ExpectSilence()
	inspect(t, v.Tab).check(t, "the widget page")
	if err := v.context.SetOffline(true); err != nil {
		t.Fatal(err)
	}
	w.Press("Enter")
	w.ExpectAlertSaying(`No connection`)
	w.ExpectIdle()
	inspect(t, v.Tab).check(t, "the widget page with a failure")
	if err := v.context.SetOffline(false); err != nil {
		t.Fatal(err)
	}

	for range 10 {
		askBackend(t, site.runningExample, http.MethodPost, "/token", "Origin: "+site.site)
	}
	fails(t, v, `Too many calls. Press Talk again in \d+ seconds?\.`)
}

func TestTheWidgetTalks(t *testing.T) {
	t.Parallel()
	server := startLiveKit(t)
	echo := startEcho(t, server)
	site := startWidget(t, referenceBackends[0], server.URL)
	v := visit(t, site.site)
	v.allow(brokenConnections + `|/livekit-client\.js\)`) // the library logs the end of a call
	v.addInitScript(t, shortTokens)
	w := pages.OpenWidget(v.Tab)
	w.Talk()
	w.ExpectStatusSaying(`You are in the call`)
	w.ExpectLevel()
	echo.expectAudio(site.agentID, 50)
	w.ExpectVoice()
	w.ExpectTokens(3) // the call goes on with new tokens
	w.ExpectStatusSaying(`You are in the call`)
	w.Talk()
	w.ExpectStatusSaying(`The call has ended`)
	w.ExpectIdle()

	w.Talk()
	w.ExpectStatusSaying(`You are in the call`)
	if _, err := site.customer.at.operator(site.key, "key", "revoke", "--key", "-"); err != nil {
		t.Fatal(err)
	}
	w.AwaitEnd()
	w.ExpectAlertSaying(`can no longer start calls`)
	w.ExpectIdle()
	w.ExpectSilence()
}

// The server never answers, so the page stays in the call while it connects.
func TestTheWidgetRenewsItsToken(t *testing.T) {
	t.Parallel()
	for i, backend := range referenceBackends {
		t.Run(backend.name, func(t *testing.T) {
			t.Parallel()
			site := startWidget(t, backend, silentServer(t))
			v := visit(t, site.site)
			v.allow(brokenConnections)
			v.addInitScript(t, shortTokens)
			w := pages.OpenWidget(v.Tab)
			w.Talk()
			w.ExpectCalling()
			w.ExpectTokens(2)
			want := `can no longer start calls`
			if i == 0 {
				if _, err := site.customer.at.operator(site.key, "key", "revoke", "--key", "-"); err != nil {
					t.Fatal(err)
				}
			} else {
				pages.OpenAgents(site.portal.Tab).Remove("Front desk")
				want = `no longer available`
			}
			w.ExpectAlertSaying(want)
			w.ExpectIdle()
			w.ExpectSilence()
		})
	}
}

// shortTokens sets the life of the page's tokens to two seconds, and records the tokens.
const shortTokens = `
	window.tokens = []
	const originalFetch = window.fetch
	window.fetch = async (resource, options) => {
		const response = await originalFetch(resource, options)
		if (resource !== '/token' || !response.ok) return response
		const body = await response.json()
		window.tokens.push(body.access_token)
		return new Response(JSON.stringify({ ...body, expires_in: 2 }), response)
	}`
