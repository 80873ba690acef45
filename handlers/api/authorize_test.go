package api_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/modelstest"
)

// anyMethods are methods of gateways' clients, also some that net/http has no name for.
var anyMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodOptions, http.MethodTrace, "PROPFIND", "PURGE", "M-SEARCH", "get",
}

// authorized is the response of both endpoints.
type authorized struct {
	AccountID, KeyID, AgentID uuid.UUID
	ExpiresAt                 time.Time
}

func TestAuthorizeAnswersAnyMethodAndPath(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *service, c customer) {
		paths := []string{
			"", "/", "/v1/calls", "//", "/../../login", "/%2e%2e/agents", "/a%2Fb%20c%3F", "/" + strings.Repeat("x", 4000),
			"?", "?other=1&agentid=x", "/v1?q=%zz", "/v1?a;b",
		}
		byToken := authorized{AccountID: c.accountID, KeyID: c.key.ID, AgentID: c.agent.ID, ExpiresAt: s.clock.Now().Add(tokenTTL).UTC().Truncate(time.Second)}
		for _, gateway := range []struct {
			base   string
			sent   option
			want   authorized
			agents []string // the header
		}{
			{"/api/authorize", bearer(c.secret), authorized{AccountID: c.accountID, KeyID: c.key.ID}, nil},
			{authorizeWidget, bearer(s.token(c)), byToken, []string{c.agent.ID.String()}},
		} {
			for i, method := range anyMethods {
				for j, path := range paths {
					if i > 0 && j > 0 && i != j {
						continue // not each path with each method
					}
					a := s.send(method, gateway.base+path, gateway.sent).is(http.StatusOK)
					var got authorized
					if method != http.MethodHead {
						a.into(&got)
					}
					if method != http.MethodHead && (got != gateway.want || !slices.Equal(a.header.Values("X-Agent-Id"), gateway.agents)) {
						t.Errorf("%s %s%s: %s, want %+v", method, gateway.base, path, a.body, gateway.want)
					}
					a.has("X-Account-Id", c.accountID.String())
					a.has("X-Key-Id", c.key.ID.String())
					a.has("Cache-Control", "no-store")
					a.lacks("Connection", "RateLimit")
				}
			}
		}
		for _, path := range []string{"/api/authorized", "/api/authorize-x", "/api/AUTHORIZE"} {
			s.get(path, bearer(c.secret)).fails(http.StatusNotFound, "NOT_FOUND")
		}
	})
}

func TestAuthorizeChecksTheAgent(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		id, foreign := c.agent.ID.String(), s.customer().agent.ID.String()
		for _, query := range []string{
			"agentId=" + id, "agentId=" + strings.ToUpper(id), "a=b&agentId=" + id + "&c=d", "%61gentId=" + strings.ReplaceAll(id, "-", "%2D"),
			"agentID=x&agentid=&agentId=" + id, "q=%zz&agentId=" + id, "agentId=" + id + "&a;b",
		} {
			a := s.get("/api/authorize/v1?"+query, bearer(c.secret)).is(http.StatusOK)
			var got authorized
			a.into(&got)
			if want := (authorized{AccountID: c.accountID, KeyID: c.key.ID, AgentID: c.agent.ID}); got != want {
				t.Errorf("%s: %+v, want %+v", query, got, want)
			}
			a.has("X-Agent-Id", id)
			a.has("X-Account-Id", c.accountID.String())
			a.has("X-Key-Id", c.key.ID.String())
		}
		for _, query := range []string{
			"agentId=" + foreign, "agentId=" + uuid.NewString(), "agentId=", "agentId", "agentId=x", "agentId=%zz", "agentId=" + id + ";x",
			"agentId={" + id + "}", "agentId=urn:uuid:" + id, "agentId=" + strings.ReplaceAll(id, "-", ""), "agentId=%20" + id, "agentId=" + id + "+",
			"agentId=" + id + "&agentId=" + id, "agentId=" + id + "&agentId=" + foreign, "agentId=&agentId=" + id, "agentId=" + uuid.Nil.String(),
		} {
			s.get("/api/authorize?"+query, bearer(c.secret)).fails(http.StatusForbidden, "AGENT_NOT_ALLOWED").
				says("AgentNotAllowed", "agent").lacks("X-Account-Id", "X-Agent-Id", "WWW-Authenticate")
		}
		s.removeAgent(c)
		s.get("/api/authorize?agentId="+id, bearer(c.secret)).fails(http.StatusForbidden, "AGENT_NOT_ALLOWED")
	})
}

// The first request announces a body and never sends it. Some gateways do that.
func TestAuthorizeAnswersBeforeTheBodyArrives(t *testing.T) {
	s := newService(t, modelstest.SQLiteURL(t))
	c := s.customer()
	token := s.token(c)
	for name, r := range map[string]struct {
		request string
		status  int
	}{
		"an announced body":         {"POST /api/authorize HTTP/1.1\r\nContent-Length: 5\r\nAuthorization: Bearer " + c.secret, http.StatusOK},
		"a GET with a body":         {"GET /api/authorize/x HTTP/1.1\r\nContent-Length: 1000000\r\nAuthorization: Bearer " + c.secret, http.StatusOK},
		"a chunked body":            {"PUT /api/authorize HTTP/1.1\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer " + c.secret, http.StatusOK},
		"100-continue":              {"PUT /api/authorize HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\nAuthorization: Bearer " + c.secret, http.StatusOK},
		"HTTP/1.0":                  {"GET /api/authorize HTTP/1.0\r\nContent-Length: 5\r\nConnection: keep-alive\r\nAuthorization: Bearer " + c.secret, http.StatusOK},
		"no key":                    {"POST /api/authorize HTTP/1.1\r\nContent-Length: 5\r\nX: y", http.StatusUnauthorized},
		"another agent":             {"POST /api/authorize?agentId=x HTTP/1.1\r\nContent-Length: 5\r\nAuthorization: Bearer " + c.secret, http.StatusForbidden},
		"a widget token":            {"POST /widget/authorize HTTP/1.1\r\nContent-Length: 5\r\nAuthorization: Bearer " + token, http.StatusOK},
		"no widget token":           {"DELETE /widget/authorize HTTP/1.1\r\nContent-Length: 5\r\nX: y", http.StatusUnauthorized},
		"a body that never stops":   {"POST /api/authorize HTTP/1.1\r\nContent-Length: 100000000\r\nAuthorization: Bearer " + c.secret + "\r\n\r\n" + strings.Repeat("x", 4096), http.StatusOK},
		"a body that is a request":  {"POST /api/authorize HTTP/1.1\r\nContent-Length: 500\r\nAuthorization: Bearer " + c.secret + "\r\n\r\nGET /login HTTP/1.1\r\nHost: x", http.StatusOK},
		"more behind a short body":  {"POST /api/authorize HTTP/1.1\r\nContent-Length: 1\r\nAuthorization: Bearer " + c.secret + "\r\n\r\nxGET /login HTTP/1.1\r\nHost: x", http.StatusOK},
		"a body that is there":      {"POST /api/authorize HTTP/1.1\r\nContent-Length: 1\r\nAuthorization: Bearer " + c.secret + "\r\n\r\nx", http.StatusOK},
		"a body that is not chunks": {"POST /api/authorize HTTP/1.1\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer " + c.secret + "\r\n\r\nzz", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			answers := s.raw(t, strings.Replace(r.request, "\r\n", "\r\nHost: portal.test\r\n", 1)+"\r\n\r\n")
			// Well below the server's limit of 15 seconds for a body, and until the end
			// of the connection.
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("the connection ended after %v", took)
			}
			if want := []int{r.status}; !slices.Equal(answers, want) {
				t.Errorf("responses %v, want %v", answers, want)
			}
		})
	}
}

// raw sends bytes and returns the status of each response until the server closes the connection.
func (s *service) raw(t *testing.T, request string) (statuses []int) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	modelstest.Must(t, err)
	defer func() { _ = conn.Close() }()
	modelstest.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	modelstest.Value(io.WriteString(conn, request))(t)
	reader := bufio.NewReader(conn)
	for {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return statuses
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Errorf("body: %v", err)
		}
		_ = response.Body.Close()
		statuses = append(statuses, response.StatusCode)
	}
}
