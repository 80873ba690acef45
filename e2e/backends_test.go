package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"portal/models/modelstest"
)

// referenceBackends are the complete backends on the Integrate page. They behave the same.
var referenceBackends = []exampleServer{
	{"Go backend", "backend.go", []string{"sh", "-c", "go build backend.go && exec ./backend"}, nil},
	{"Node backend", "backend.mjs", []string{"node", "backend.mjs"}, nil},
	{"Python backend", "backend.py", []string{"python3", "backend.py"}, nil},
}

// onEachBackend runs test with each backend, as the page shows it to a customer who has one agent.
func onEachBackend(t *testing.T, test func(t *testing.T, c customer, s exampleServer, code string)) {
	t.Helper()
	t.Parallel()
	for _, server := range referenceBackends {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			c := sharedPortal(t).signedIn(t)
			c.newAgent(t, "Front desk")
			test(t, c, server, c.example("/integrate", server.name))
		})
	}
}

func TestReferenceBackendsIssueTokens(t *testing.T) {
	onEachBackend(t, func(t *testing.T, c customer, s exampleServer, code string) {
		agentID, key := agentIDs.FindString(code), c.newKey(t, "backend")
		s.env = []string{
			"BEHIND_PROXY=1", "ALLOWED_ORIGINS=https://shop.example.com,https://www.example.com",
			`SESSIONS={"the-session": {"id": "customer-7", "name": "María"}, "": {"id": "guest"}}`,
		}
		const visitors = 9 // of this test
		server := s.start(t, strings.Replace(code, "10_000", strconv.Itoa(visitors), 1), key)
		ask := func(address string, status int, code string) modelstest.Response {
			t.Helper()
			return askBackend(t, server, status, code, http.MethodPost, "Origin: https://www.example.com", "X-Forwarded-For: "+address)
		}

		got := ask("2001:db8:1:2::1, 192.0.2.1", http.StatusOK, "")
		c.expectTokenFor(t, key, agentID, got.Body)
		if got.Header.Get("Access-Control-Allow-Origin") != "https://www.example.com" || got.Header.Get("Vary") != "Origin" {
			t.Errorf("CORS headers: %v", got.Header)
		}
		preflight := modelstest.NewVisitor(t, server.site).
			Send(http.MethodOptions, "/token", "", "Origin: https://www.example.com", "Access-Control-Request-Method: POST").Is(http.StatusNoContent)
		if preflight.Header.Get("Access-Control-Allow-Headers") != "Authorization, Content-Type" {
			t.Errorf("preflight: %v", preflight.Header)
		}
		for _, origin := range []string{"", "https://evil.example", "null", "https://www.example.com.evil.example"} {
			for _, method := range []string{http.MethodPost, http.MethodOptions} {
				got := askBackend(t, server, http.StatusForbidden, "ORIGIN_NOT_ALLOWED", method, "Origin: "+origin)
				if got.Header.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s gets CORS headers", origin)
				}
			}
		}

		c.expectContexts(t, server, key)

		// The visitor has used one of ten. The last address is the proxy's view of the
		// visitor.
		for i := range 9 {
			ask(fmt.Sprintf("203.0.113.%d, 192.0.2.1", i), http.StatusOK, "")
		}
		limited := ask("192.0.2.1", http.StatusTooManyRequests, "RATE_LIMITED")
		if seconds, err := strconv.Atoi(limited.Header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 60 {
			t.Errorf("Retry-After %q", limited.Header.Get("Retry-After"))
		}
		ask("::ffff:192.0.2.1", http.StatusTooManyRequests, "RATE_LIMITED")
		// One visitor has a whole network of IPv6 addresses. A port or a name does not make
		// another visitor.
		for i := range 10 {
			ask(fmt.Sprintf("2001:db8:0:7::%x", i), http.StatusOK, "")
			ask(fmt.Sprintf("192.0.2.33:%d", i), http.StatusOK, "")
		}
		ask("2001:0DB8::7:ffff:0:0:1", http.StatusTooManyRequests, "RATE_LIMITED")
		ask("unknown", http.StatusTooManyRequests, "RATE_LIMITED")
		ask("2001:db8:0:8::1", http.StatusOK, "")

		c.removeAgent(t, agentID)
		ask("192.0.2.7", http.StatusBadGateway, "AGENT_NOT_FOUND")
		c.revokeOnly(t)
		ask("192.0.2.8", http.StatusBadGateway, "UNAUTHORIZED")
		if !server.prints("revoked") || strings.Contains(server.output.String(), key[:12]) {
			t.Errorf("the log does not say why the key was refused, or has the key:\n%s", server.output)
		}
		ask("192.0.2.9", http.StatusTooManyRequests, "RATE_LIMITED") // one visitor too many
	})
}

// appRequests are the bodies that LiveKit's SDKs send: JavaScript and Flutter without options,
// Swift and Android without options, and all with options, which a visitor must not choose. Further
// ones ask for the portal's own fields and a recording, or are not JSON.
var appRequests = []string{
	`{}`, `{"room_config":{}}`, `{"room_config": {"agents": []}}`,
	`{"room_name":"lobby","participant_name":"Mallory","participant_identity":"admin","participant_metadata":"x",` +
		`"participant_attributes":{"agentId":"x","userId":"admin"},"room_config":{"agents":[{"agent_name":"other","metadata":"x"}]}}`,
	`{"agentId":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c004","user":{"id":"admin"},"metadata":{"x":"y"},"expiresIn":60,` +
		`"room_config":{"name":"lobby","egress":{"room":{"file_outputs":[{"filepath":"x","s3":{"bucket":"mine"}}]}}}}`,
	`{"room_config":{"metadata":"` + strings.Repeat("x", 16<<10-32) + `"}}`, ``, `[`,
}

// expectContexts checks that a token depends on the visitor's session and on nothing in the body,
// and that an app, which has no origin, needs a session.
func (c customer) expectContexts(t *testing.T, server runningExample, key string) {
	t.Helper()
	for i, body := range appRequests {
		for session, user := range map[string]string{
			"Authorization: " + []string{"Bearer", "bearer"}[i%2] + " the-session": `{"id":"customer-7","name":"María"}`,
			"Cookie: a=b; session=the-session; c":                                  `{"id":"customer-7","name":"María"}`,
			"Cookie: a=b":                                                          `{"id":"guest"}`,
		} {
			headers := []string{session, "Content-Type: application/json", fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", i/3)}
			if strings.HasPrefix(session, "Cookie") {
				headers = append(headers, "Origin: https://www.example.com")
			}
			got := modelstest.NewVisitor(t, server.site).Send(http.MethodPost, "/token", body, headers...).Is(http.StatusOK)
			form := url.Values{"token": {got.Find(`"access_token":"([^"]+)"`)}}
			claims := c.Post("/api/widget/introspect", form, modelstest.Bearer(key)).Is(http.StatusOK).Body
			if !strings.Contains(claims, `"user":`+user) || strings.Contains(claims, `"metadata"`) {
				t.Errorf("%.60s: the token has %s, want the user %s alone", body, claims, user)
			}
		}
	}
	for _, headers := range [][]string{
		{"Authorization: Bearer another session"},
		{"Authorization: the-session"},
		{"Authorization: Bearer "},
		{"Authorization: Bearer", "Cookie: session=the-session"},
		{"Authorization: "},
		{"Cookie: session=the-session"},
		{"Authorization: Bearer the-session", "Origin: https://evil.example"},
	} {
		askBackend(t, server, http.StatusForbidden, "ORIGIN_NOT_ALLOWED", http.MethodPost, headers...)
	}
	modelstest.NewVisitor(t, server.site).Send(http.MethodPost, "/token", strings.Repeat(" ", 16<<10+1), "Authorization: Bearer the-session").
		Is(http.StatusRequestEntityTooLarge)
}

// badNetwork is in place of the portal. Its last responses are held until release is closed.
type badNetwork struct {
	*httptest.Server

	requests       atomic.Int32
	stolen         atomic.Bool // the key was sent elsewhere
	held, released chan struct{}
}

func startBadNetwork(t *testing.T) *badNetwork {
	t.Helper()
	n := &badNetwork{held: make(chan struct{}), released: make(chan struct{})}
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n.stolen.Store(true) }))
	t.Cleanup(thief.Close)
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch _, _ = io.Copy(io.Discard, r.Body); n.requests.Add(1) {
		case 1:
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		case 2:
			<-r.Context().Done() // no response
		case 3:
			http.Error(w, "<html>", http.StatusInternalServerError)
		case 4:
			http.Error(w, "<html>", http.StatusOK) // of another server
		case 5, 6, 7:
			_, _ = io.WriteString(w, []string{"null", "[1]", `{"token": "x"}`}[n.requests.Load()-5])
		case 8:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			close(n.held)
			<-n.released
			_, _ = io.WriteString(w, `{"access_token": "x"}`)
		}
	}))
	n.Config.SetKeepAlivesEnabled(false)
	t.Cleanup(n.Close)
	return n
}

func TestReferenceBackendsSurviveABadNetworkAndBadClients(t *testing.T) {
	onEachBackend(t, func(t *testing.T, c customer, s exampleServer, code string) {
		network := startBadNetwork(t)
		code = strings.Replace(code, c.URL, network.URL, 1)
		code = strings.NewReplacer(
			" = 500", " = 20", // connections
			// They end after six or eight seconds in place of ten or twenty, and at a
			// stop after five in place of ten.
			"ReadTimeout: 10 ", "ReadTimeout: 6 ", "Timeout: 10_000", "Timeout: 6000", "monotonic() + 20", "monotonic() + 8",
			"AfterFunc(10*", "AfterFunc(5*", "closeAllConnections(), 10_000", "closeAllConnections(), 5000", "monotonic() + 10", "monotonic() + 5",
		).Replace(code)
		// The second key would add a header.
		for _, key := range []string{"", "nas_secret\nX-Injected: 1"} {
			s.expectNoStart(t, code, key, "NAS_API_KEY is missing or malformed\n")
		}
		server := s.start(t, code, "nas_secret\n") // as from a file
		ask := func(status int, code string) modelstest.Response {
			t.Helper()
			// Without a proxy in front, the second header is of the visitor and does
			// not count.
			return askBackend(t, server, status, code, http.MethodPost, "Origin: "+server.site, fmt.Sprintf("X-Forwarded-For: 192.0.2.%d", network.requests.Load()))
		}
		for range 7 {
			ask(http.StatusServiceUnavailable, "UNAVAILABLE")
		}
		if busy := ask(http.StatusServiceUnavailable, "UNAVAILABLE"); busy.Header.Get("Retry-After") != "1" {
			t.Errorf("the response does not pass on the portal's Retry-After: %v", busy.Header)
		}
		if network.stolen.Load() || network.requests.Load() != 8 {
			t.Errorf("the backend follows a redirect: %v, or requests too often: %d", network.stolen.Load(), network.requests.Load())
		}
		server.expectTwoFiles(t, s.file)
		server.expectSlowConnectionsEnd(t)

		// A stop finishes the request under way. A slow connection does not delay it for
		// long.
		var requests sync.WaitGroup
		requests.Go(func() { ask(http.StatusOK, "") })
		<-network.held
		_ = network.Listener.Close()
		if away := ask(http.StatusServiceUnavailable, "UNAVAILABLE"); away.Header.Get("Retry-After") != "5" {
			t.Errorf("Retry-After %q", away.Header.Get("Retry-After"))
		}
		ask(http.StatusTooManyRequests, "RATE_LIMITED")
		modelstest.Value(io.WriteString(dialBackend(t, server), "GET / HTTP/1.1\r\n"))(t)
		modelstest.Must(t, server.Process.Signal(syscall.SIGTERM))
		modelstest.Eventually(t, "new connections are refused", func() bool {
			conn, err := net.Dial("tcp", strings.TrimPrefix(server.site, "http://"))
			if err == nil {
				_ = conn.Close()
			}
			return err != nil
		})
		close(network.released)
		requests.Wait()
		if err := server.AwaitExit(time.Minute); err != nil {
			t.Errorf("%v\n%s", err, server.output)
		}
		if strings.Contains(server.output.String(), "nas_secret") {
			t.Errorf("the log has the key:\n%s", server.output)
		}
	})
}

// expectTwoFiles checks that the backend serves the widget page with a nonce, its library, and no
// other file.
func (e runningExample) expectTwoFiles(t *testing.T, source string) {
	t.Helper()
	client := modelstest.NewVisitor(t, e.site)
	client.Get("/").Is(http.StatusNotFound).Find(`(NOT_FOUND)`)
	if got := client.Get("/livekit-client.js").Is(http.StatusNotFound).Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("a missing library is cached: %s", got)
	}
	for path, content := range map[string]string{"widget.html": "<script nonce=NONCE>", "node_modules/livekit-client/dist/livekit-client.esm.mjs": "library"} {
		path = filepath.Join(e.folder, path)
		modelstest.Must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)))
	}
	nonces := map[string]bool{}
	for range 2 {
		got := client.Get("/?utm=1").Is(http.StatusOK)
		nonce := got.Find(`<script nonce=(.{20,})>`)
		nonces[nonce] = true
		policy := got.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "script-src 'self' 'nonce-"+nonce+"';") || !strings.Contains(policy, "frame-ancestors 'none'") ||
			got.Header.Get("X-Content-Type-Options") != "nosniff" || got.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("the page is %v %s", got.Header, got.Body)
		}
	}
	if len(nonces) != 2 {
		t.Errorf("the nonces of two responses are %v", nonces)
	}
	if got := client.Get("/livekit-client.js?v=1"); got.Body != "library" || got.Header.Get("X-Content-Type-Options") != "nosniff" ||
		got.Header.Get("Cache-Control") != "max-age=3600" {
		t.Errorf("the library is %v %s", got.Header, got.Body)
	}
	for _, path := range []string{
		"/" + source, "/widget.html", "/../" + source, "/%2e%2e/" + source, "/node_modules/livekit-client/dist/livekit-client.esm.mjs",
		"/livekit-client.js/../" + source, "//" + source, "/token", "/token?a=b", "/%6civekit-client.js", "/constructor", "/.env",
	} {
		if got := sendRaw(t, e, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); got != http.StatusNotFound {
			t.Errorf("%s: status %d", path, got)
		}
	}
	for _, method := range []string{http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		client.Send(method, "/token", "").Is(http.StatusNotFound)
	}
	for body, want := range map[string]int{
		"Content-Length: 1000000000\r\n\r\n": http.StatusRequestEntityTooLarge,
		"Content-Length: 5\r\n\r\nhello":     http.StatusForbidden,
		// Some apps do not know the length.
		"Transfer-Encoding: chunked\r\n\r\n1;a=b\r\n{\r\n1\r\n}\r\n0\r\n\r\n":                                                 http.StatusForbidden,
		"Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("2000\r\n"+strings.Repeat(" ", 0x2000)+"\r\n", 3) + "0\r\n\r\n": http.StatusRequestEntityTooLarge,
	} {
		if got := sendRaw(t, e, "POST /token HTTP/1.1\r\nHost: x\r\n"+body); got != want {
			t.Errorf("%s: status %d, want %d", body, got, want)
		}
	}
}

// expectSlowConnectionsEnd checks that slow requests use up the connections for seconds only.
func (e runningExample) expectSlowConnectionsEnd(t *testing.T) {
	t.Helper()
	const request = "GET /token HTTP/1.1\r\nHost: x\r\n"
	var slow sync.WaitGroup
	for range 20 {
		conn := dialBackend(t, e)
		slow.Go(func() {
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("a slow connection stays open")
			}
		})
		go func() {
			for _, err := io.WriteString(conn, request); err == nil; _, err = io.WriteString(conn, "X: y\r\n") {
				time.Sleep(time.Second)
			}
		}()
	}
	modelstest.Eventually(t, "further connections are closed", func() bool { return sendRaw(t, e, request+"\r\n") == 0 })
	slow.Wait()
	modelstest.Eventually(t, "others are served again", func() bool { return sendRaw(t, e, request+"\r\n") == http.StatusNotFound })
}

// dialBackend opens a connection that is closed at the end of the test.
func dialBackend(t *testing.T, server runningExample) net.Conn {
	t.Helper()
	conn := modelstest.Value(net.Dial("tcp", strings.TrimPrefix(server.site, "http://")))(t)
	t.Cleanup(func() { _ = conn.Close() })
	modelstest.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	return conn
}

// sendRaw sends the bytes of a request and returns the status of the response, or 0 if the
// connection is closed.
func sendRaw(t *testing.T, server runningExample, request string) int {
	t.Helper()
	conn := dialBackend(t, server)
	defer conn.Close()
	_, _ = io.WriteString(conn, request)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

var agentIDs = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// askBackend sends a request to /token with these headers, and checks the status and, of an error,
// the code.
func askBackend(t *testing.T, server runningExample, status int, code, method string, headers ...string) modelstest.Response {
	t.Helper()
	response := modelstest.NewVisitor(t, server.site).Send(method, "/token", "", headers...)
	var problem struct{ Error, Code string }
	response.JSON(&problem)
	if response.StatusCode != status || problem.Code != code || (code == "") != (problem.Error == "") {
		t.Errorf("%s %d, want %d %s", response.Body, response.StatusCode, status, code)
	}
	if response.Header.Get("Cache-Control") != "no-store" || strings.Contains(response.Body, "nas_") {
		t.Errorf("Cache-Control %q, or the response has the key: %s", response.Header.Get("Cache-Control"), response.Body)
	}
	return response
}
