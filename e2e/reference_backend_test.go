package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portal/e2e/pages"
)

// referenceBackends are the complete backends on the Integrate page. They behave the same.
var referenceBackends = []exampleServer{
	{"Go backend", "backend.go", []string{"go", "run", "backend.go"}, "install Go (https://go.dev/dl)", nil},
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
		if got.status != http.StatusNoContent || got.header.Get("Access-Control-Allow-Methods") != "POST" {
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
			default:
				http.Error(w, "<html>", http.StatusInternalServerError)
			}
		}))
		t.Cleanup(network.Close)
		code = strings.Replace(code, v.Site, network.URL, 1)
		code = strings.Replace(code, "10_000", "3", 1) // visitors
		s.env = []string{"BEHIND_PROXY=1"}
		server := s.start(t, code, "nas_secret")
		page := "Origin: " + server.site
		for i := range 3 {
			askBackend(t, server, http.MethodPost, "/token", page, fmt.Sprintf("X-Forwarded-For: 192.0.2.%d", i)).expect(t, http.StatusServiceUnavailable, "UNAVAILABLE")
		}
		askBackend(t, server, http.MethodPost, "/token", page, "X-Forwarded-For: 192.0.2.9").expect(t, http.StatusTooManyRequests, "RATE_LIMITED")
		if stolen.Load() || requests.Load() != 3 {
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
		server := s.run(t, code, "")
		select {
		case <-server.Exited():
		case <-time.After(time.Minute):
			t.Fatal("it does not exit")
		}
		if server.ProcessState.Success() || !server.prints("NAS_API_KEY is not set\n") {
			t.Errorf("the output is\n%s", server.output)
		}
	})
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
