package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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

	"portal/e2e/pages"
)

// referenceBackends are the complete backends on the Integrate page. They behave the same.
var referenceBackends = []exampleServer{
	{
		"Go backend", "backend.go",
		[]string{"sh", "-c", "go build backend.go && exec ./backend"},
		"install Go (https://go.dev/dl)", nil,
	},
	{"Node backend", "backend.mjs", []string{"node", "backend.mjs"}, "install Node.js (Debian: apt-get install nodejs)", nil},
	{"Python backend", "backend.py", []string{"python3", "backend.py"}, "install it (Debian: apt-get install python3)", nil},
}

// onEachBackend runs test with each backend as copied from the page of a customer who has one
// agent.
func onEachBackend(t *testing.T, portal func(*testing.T) *process, test func(t *testing.T, v *visitor, c customer, s exampleServer, code string)) {
	t.Helper()
	for _, server := range referenceBackends {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			c := portal(t).newCustomer(t)
			c.newAgent(t, "Front desk")
			v := visit(t, c.at.URL)
			v.setCookies(t, c.session(t))
			test(t, v, c, server, pages.OpenIntegrate(v.Tab).File(server.file, server.name))
		})
	}
}

func TestReferenceBackendsIssueTokens(t *testing.T) {
	t.Parallel()
	onEachBackend(t, sharedPortal, func(t *testing.T, v *visitor, c customer, s exampleServer, code string) {
		agentID := agentIDs.FindString(code)
		key := pages.OpenKeys(v.Tab).Add("backend")
		s.env = []string{
			"BEHIND_PROXY=1",
			"ALLOWED_ORIGINS=https://shop.example.com,https://www.example.com",
		}
		server := s.start(t, code, key)
		const page = "Origin: https://www.example.com"
		const visitor = "X-Forwarded-For: 2001:db8:1:2::1, 192.0.2.1"

		got := askBackend(t, server, http.MethodPost, "/token", page, visitor)
		got.expect(t, http.StatusOK, "")
		expectToken(t, c.at.URL, key, agentID, got.body)
		if got.header.Get("Access-Control-Allow-Origin") != "https://www.example.com" ||
			got.header.Get("Vary") != "Origin" {
			t.Errorf("CORS headers: %v", got.header)
		}
		got = askBackend(t, server, http.MethodOptions, "/token", page, "Access-Control-Request-Method: POST")
		if got.status != http.StatusNoContent || got.header.Get("Access-Control-Allow-Headers") != "Content-Type" {
			t.Errorf("preflight: %d %v", got.status, got.header)
		}
		for _, origin := range []string{
			"", "Origin: https://evil.example", "Origin: null",
			"Origin: https://www.example.com.evil.example",
		} {
			for _, method := range []string{http.MethodPost, http.MethodOptions} {
				got := askBackend(t, server, method, "/token", origin, visitor)
				got.expect(t, http.StatusForbidden, "ORIGIN_NOT_ALLOWED")
				if got.header.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s gets CORS headers", origin)
				}
			}
		}

		// The visitor has used one of ten. The last address is the proxy's view of the visitor.
		for i := range 9 {
			askBackend(t, server, http.MethodPost, "/token", page, fmt.Sprintf("X-Forwarded-For: 203.0.113.%d, 192.0.2.1", i)).expect(t, http.StatusOK, "")
		}
		limited := askBackend(t, server, http.MethodPost, "/token", page, visitor)
		limited.expect(t, http.StatusTooManyRequests, "RATE_LIMITED")
		if seconds, err := strconv.Atoi(limited.header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 60 {
			t.Errorf("Retry-After %q", limited.header.Get("Retry-After"))
		}
		// One visitor has a whole network of IPv6 addresses.
		for i := range 10 {
			askBackend(t, server, http.MethodPost, "/token", page, fmt.Sprintf("X-Forwarded-For: 2001:db8:0:7::%x", i)).expect(t, http.StatusOK, "")
		}
		askBackend(t, server, http.MethodPost, "/token", page, "X-Forwarded-For: 2001:0DB8::7:ffff:0:0:1").expect(t, http.StatusTooManyRequests, "RATE_LIMITED")
		askBackend(t, server, http.MethodPost, "/token", page, "X-Forwarded-For: 2001:db8:0:8::1").expect(t, http.StatusOK, "")
		askBackend(t, server, http.MethodPost, "/token", page, "X-Forwarded-For: ::ffff:192.0.2.1").expect(t, http.StatusTooManyRequests, "RATE_LIMITED")
		// A port or a name does not make another visitor.
		for i := range 10 {
			askBackend(t, server, http.MethodPost, "/token", page, fmt.Sprintf("X-Forwarded-For: 192.0.2.33:%d", i)).expect(t, http.StatusOK, "")
		}
		askBackend(t, server, http.MethodPost, "/token", page, "X-Forwarded-For: unknown").expect(t, http.StatusTooManyRequests, "RATE_LIMITED")

		pages.OpenAgents(v.Tab).Remove("Front desk")
		askBackend(t, server, http.MethodPost, "/token", page, "X-Forwarded-For: 192.0.2.7").expect(t, http.StatusBadGateway, "AGENT_NOT_FOUND")
		if _, err := c.at.operator(key, "key", "revoke", "--key", "-"); err != nil {
			t.Fatal(err)
		}
		askBackend(t, server, http.MethodPost, "/token", page, "X-Forwarded-For: 192.0.2.8").expect(t, http.StatusBadGateway, "UNAUTHORIZED")
		if !server.prints("revoked") || strings.Contains(server.output.String(), key[:12]) {
			t.Errorf("the log does not say why the key was refused, or has the key:\n%s", server.output)
		}
	})
}

func TestReferenceBackendsPassOnOutages(t *testing.T) {
	t.Parallel()
	slow := func(t *testing.T) *process {
		t.Helper()
		return ownPortal(t, settings{extra: []string{"PORTAL_RATE_LIMIT=1:1"}})
	}
	onEachBackend(t, slow, func(t *testing.T, v *visitor, c customer, s exampleServer, code string) {
		server := s.start(t, code, pages.OpenKeys(v.Tab).Add("backend"))
		page := "Origin: " + server.site
		var busy atomic.Int32
		var requests sync.WaitGroup
		for i := range 8 {
			requests.Go(func() {
				// Without a proxy in front, the header is of the visitor and does not count.
				got := askBackend(t, server, http.MethodPost, "/token", page, fmt.Sprintf("X-Forwarded-For: 192.0.2.%d", i))
				if got.status == http.StatusServiceUnavailable && got.header.Get("Retry-After") == "1" {
					busy.Add(1)
				}
			})
		}
		requests.Wait()
		if busy.Load() == 0 {
			t.Error("no response passes on the Retry-After of the portal")
		}
		c.at.pause(t)
		for range 2 {
			away := askBackend(t, server, http.MethodPost, "/token", page)
			away.expect(t, http.StatusServiceUnavailable, "UNAVAILABLE")
			if away.header.Get("Retry-After") != "5" {
				t.Errorf("Retry-After %q", away.header.Get("Retry-After"))
			}
		}
		askBackend(t, server, http.MethodPost, "/token", page).expect(t, http.StatusTooManyRequests, "RATE_LIMITED")
		c.at.resume(t)
	})
}

func TestReferenceBackendsSurviveABadNetwork(t *testing.T) {
	t.Parallel()
	onEachBackend(t, sharedPortal, func(t *testing.T, v *visitor, _ customer, s exampleServer, code string) {
		var stolen atomic.Bool
		thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) { stolen.Store(true) }))
		t.Cleanup(thief.Close)
		var requests atomic.Int32
		network := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch _, _ = io.Copy(io.Discard, r.Body); requests.Add(1) {
			case 1:
				http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
			case 2:
				<-r.Context().Done() // no response
			case 3:
				http.Error(w, "<html>", http.StatusInternalServerError)
			case 4:
				http.Error(w, "<html>", http.StatusOK) // of another server
			default:
				_, _ = io.WriteString(w, []string{"null", "[1]", `{"token": "x"}`}[(requests.Load()-5)%3])
			}
		}))
		t.Cleanup(network.Close)
		code = strings.Replace(code, v.Site, network.URL, 1)
		code = strings.Replace(code, "10_000", "7", 1) // visitors
		s.env = []string{"BEHIND_PROXY=1"}
		server := s.start(t, code, "nas_secret")
		page := "Origin: " + server.site
		for i := range 7 {
			askBackend(t, server, http.MethodPost, "/token", page, fmt.Sprintf("X-Forwarded-For: 192.0.2.%d", i)).expect(t, http.StatusServiceUnavailable, "UNAVAILABLE")
		}
		askBackend(t, server, http.MethodPost, "/token", page, "X-Forwarded-For: 192.0.2.9").expect(t, http.StatusTooManyRequests, "RATE_LIMITED")
		if stolen.Load() || requests.Load() != 7 {
			t.Errorf("the backend follows a redirect: %v, or requests too often: %d", stolen.Load(), requests.Load())
		}
		if strings.Contains(server.output.String(), "nas_secret") {
			t.Errorf("the log has the key:\n%s", server.output)
		}
	})
}

func TestReferenceBackendsDoNotStartWithoutAKey(t *testing.T) {
	t.Parallel()
	onEachBackend(t, sharedPortal, func(t *testing.T, _ *visitor, _ customer, s exampleServer, code string) {
		// The second key would add a header.
		for _, key := range []string{"", "nas_secret\nX-Injected: 1"} {
			server := s.run(t, code, key)
			select {
			case <-server.Exited():
			case <-time.After(time.Minute):
				t.Fatal("it does not exit")
			}
			if server.ProcessState.Success() || !server.prints("NAS_API_KEY is missing or malformed\n") || strings.Contains(server.output.String(), "secret") {
				t.Errorf("the output is\n%s", server.output)
			}
		}
	})
}

func TestReferenceBackendsServeTwoFiles(t *testing.T) {
	t.Parallel()
	onEachBackend(t, sharedPortal, func(t *testing.T, _ *visitor, _ customer, s exampleServer, code string) {
		server := s.start(t, code, "nas_secret\n") // as from a file
		askBackend(t, server, http.MethodGet, "/", "").expect(t, http.StatusNotFound, "NOT_FOUND")
		for path, content := range map[string]string{"widget.html": "<script nonce=NONCE>", "node_modules/livekit-client/dist/livekit-client.esm.mjs": "library"} {
			path = filepath.Join(server.folder, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		nonces := map[string]bool{}
		for range 2 {
			got := askBackend(t, server, http.MethodGet, "/?utm=1", "")
			_, nonce, _ := strings.Cut(string(got.body), "<script nonce=")
			nonces[strings.TrimSuffix(nonce, ">")] = true
			policy := got.header.Get("Content-Security-Policy")
			if got.status != http.StatusOK || len(nonce) < 20 || !strings.Contains(policy, "script-src 'self' 'nonce-"+strings.TrimSuffix(nonce, ">")+"';") ||
				!strings.Contains(policy, "frame-ancestors 'none'") || got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("the page is %d %v %s", got.status, got.header, got.body)
			}
		}
		if len(nonces) != 2 {
			t.Errorf("the nonces of two responses are %v", nonces)
		}
		got := askBackend(t, server, http.MethodGet, "/livekit-client.js", "")
		if string(got.body) != "library" || got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("the library is %v %s", got.header, got.body)
		}
		for _, path := range []string{
			"/" + s.file, "/widget.html", "/../" + s.file, "/%2e%2e/" + s.file, "/node_modules/livekit-client/dist/livekit-client.esm.mjs",
			"/livekit-client.js/../" + s.file, "//" + s.file, "/token", "/constructor", "/.env",
		} {
			if got := sendRaw(t, server, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); got != http.StatusNotFound {
				t.Errorf("%s: status %d", path, got)
			}
		}
		for _, body := range []string{"Content-Length: 1000000000", "Transfer-Encoding: chunked"} {
			if got := sendRaw(t, server, "POST /token HTTP/1.1\r\nHost: x\r\n"+body+"\r\n\r\n"); got != http.StatusRequestEntityTooLarge {
				t.Errorf("%s: status %d", body, got)
			}
		}
		if got := sendRaw(t, server, "POST /token HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"); got != http.StatusForbidden {
			t.Errorf("with a short body: status %d", got)
		}
	})
}

func TestReferenceBackendsEndSlowConnections(t *testing.T) {
	t.Parallel()
	onEachBackend(t, sharedPortal, func(t *testing.T, _ *visitor, _ customer, s exampleServer, code string) {
		server := s.start(t, strings.Replace(code, "= 500", "= 20", 1), "nas_secret")
		const request = "GET / HTTP/1.1\r\nHost: x\r\n"
		var slow sync.WaitGroup
		for range 20 {
			conn := dialBackend(t, server)
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
		eventually(t, "further connections are closed", func() bool { return sendRaw(t, server, request+"\r\n") == 0 })
		slow.Wait() // for ten or twenty seconds
		eventually(t, "others are served again", func() bool { return sendRaw(t, server, request+"\r\n") == http.StatusNotFound })
	})
}

func TestReferenceBackendsStopCleanly(t *testing.T) {
	t.Parallel()
	onEachBackend(t, sharedPortal, func(t *testing.T, v *visitor, _ customer, s exampleServer, code string) {
		arrived, release := make(chan struct{}), make(chan struct{})
		portal := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(arrived)
			<-release
			_, _ = io.WriteString(w, `{"access_token": "x"}`)
		}))
		t.Cleanup(portal.Close)
		server := s.start(t, strings.Replace(code, v.Site, portal.URL, 1), "nas_secret")
		var got backendReply
		var request sync.WaitGroup
		request.Go(func() { got = askBackend(t, server, http.MethodPost, "/token", "Origin: "+server.site) })
		<-arrived
		slow := dialBackend(t, server) // does not delay the end for long
		if _, err := io.WriteString(slow, "GET / HTTP/1.1\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := server.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		eventually(t, "new connections are refused", func() bool {
			conn, err := net.Dial("tcp", strings.TrimPrefix(server.site, "http://"))
			if err == nil {
				_ = conn.Close()
			}
			return err != nil
		})
		close(release)
		request.Wait()
		got.expect(t, http.StatusOK, "")
		if err := server.AwaitExit(time.Minute); err != nil {
			t.Errorf("%v\n%s", err, server.output)
		}
	})
}

// dialBackend opens a connection that is closed at the end of the test.
func dialBackend(t *testing.T, server runningExample) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.site, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
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

// backendReply is a response of a reference backend.
type backendReply struct {
	status int
	header http.Header
	body   []byte
}

// expect checks the status and, of an error, the code.
func (r backendReply) expect(t *testing.T, status int, code string) {
	t.Helper()
	var problem struct{ Error, Code string }
	if err := json.Unmarshal(r.body, &problem); err != nil || r.status != status || problem.Code != code || (code == "") != (problem.Error == "") {
		t.Errorf("%d %s, want %d %s", r.status, r.body, status, code)
	}
	if r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control %q", r.header.Get("Cache-Control"))
	}
	if strings.Contains(string(r.body), "nas_") {
		t.Errorf("the response has the key: %s", r.body)
	}
}

// askBackend sends a request with these headers, one "name: value" each.
func askBackend(t *testing.T, server runningExample, method, path string, headers ...string) backendReply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.site+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		if name, value, found := strings.Cut(header, ": "); found {
			request.Header.Set(name, value)
		}
	}
	response, err := formClient.Do(request)
	if err != nil {
		t.Error(err)
		return backendReply{}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return backendReply{response.StatusCode, response.Header, body}
}
