package e2e

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
)

func withMicrophone(o *playwright.BrowserNewContextOptions) {
	o.Permissions = append(o.Permissions, "microphone")
}

// widgetSite is a customer's site with the widget page and one of the backends.
type widgetSite struct {
	runningExample

	customer customer
	portal   *visitor // signed in to the portal
	key      string
}

// startWidget starts a customer's site on a portal with this LiveKit server, or with none.
func startWidget(t *testing.T, backend exampleServer, livekitURL string) widgetSite {
	t.Helper()
	var s settings
	if livekitURL != "" {
		s.extra = []string{"PORTAL_LIVEKIT_URL=" + livekitURL, "PORTAL_LIVEKIT_API_KEY=key", "PORTAL_LIVEKIT_API_SECRET=" + randomHex(16)}
	}
	c := ownPortal(t, s).newCustomer(t)
	c.newAgent(t, "Front desk")
	v := visit(t, c.at.URL)
	v.setCookies(t, c.session(t))
	key := pages.OpenKeys(v.Tab).Add("widget")
	integrate := pages.OpenIntegrate(v.Tab)
	backend.env = []string{"LIVEKIT_URL=" + livekitURL, "BEHIND_PROXY=1"}
	server := backend.start(t, integrate.File(backend.file, backend.name), key)
	folder := server.folder
	if err := os.WriteFile(filepath.Join(folder, "widget.html"), []byte(integrate.File("widget.html", "Widget page")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(theRun.root, "node_modules"), filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return widgetSite{server, c, v, key}
}

// silentServer returns the URL of a LiveKit server that accepts connections and sends nothing.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return "ws://" + listener.Addr().String()
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
	visitWidget := func(t *testing.T, profiles ...profile) *visitor {
		t.Helper()
		v := visit(t, site.site, append(profiles, withoutMotion)...)
		v.allow(brokenConnections)
		return v
	}
	fails(t, visitWidget(t), `The microphone is blocked`)

	v := visitWidget(t, withMicrophone)
	v.addInitScript(t, `navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('', 'NotFoundError') }`)
	fails(t, v, `No microphone was found`)

	v = visitWidget(t, withMicrophone)
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

// The server never answers, so the page stays in the call while it connects.
func TestTheWidgetRenewsItsToken(t *testing.T) {
	t.Parallel()
	for i, backend := range referenceBackends {
		t.Run(backend.name, func(t *testing.T) {
			t.Parallel()
			site := startWidget(t, backend, silentServer(t))
			v := visit(t, site.site, withMicrophone, withoutMotion)
			v.allow(brokenConnections)
			v.addInitScript(t, shortTokens)
			w := pages.OpenWidget(v.Tab)
			w.Talk()
			w.ExpectCalling()
			if _, err := v.Page.WaitForFunction(`() => new Set(window.tokens).size >= 2`, nil); err != nil {
				t.Fatalf("no second token: %v", err)
			}
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
