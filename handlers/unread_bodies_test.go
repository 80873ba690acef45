package handlers_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"portal/models/modelstest"
)

// unreadTimeout is how long a response may take. It is long, because the machine may be busy, and
// shorter than the 15 s that the server waits for a body.
const unreadTimeout = 10 * time.Second

// exchange sends a request and returns the statuses of the responses until the server closes the
// connection. If it does not close in time, the test fails.
func exchange(t *testing.T, address, request string) (statuses []int) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	modelstest.Must(t, err)
	defer func() { _ = conn.Close() }()
	modelstest.Must(t, conn.SetDeadline(time.Now().Add(unreadTimeout)))
	modelstest.Value(io.WriteString(conn, request))(t)
	reader := bufio.NewReader(conn)
	for {
		response, err := http.ReadResponse(reader, nil)
		if err, ok := errors.AsType[net.Error](err); ok && err.Timeout() {
			t.Errorf("%.60q: the responses are %v, and the connection is open", request, statuses)
		}
		if err != nil {
			return statuses
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		statuses = append(statuses, response.StatusCode)
	}
}

// serveBodies starts a server of the system that waits for bodies as the portal does.
func (s *system) serveBodies(t *testing.T) (address string) {
	t.Helper()
	server := httptest.NewUnstartedServer(s.handler)
	server.Config.ReadTimeout = 15 * time.Second
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// The test requests every route, and a path and a method without one, as a visitor who announces a
// body that does not come.
func TestRefusedRequestsDoNotWaitForTheirBodies(t *testing.T) {
	t.Parallel()
	s := newSystem(t, modelstest.SQLiteURL(t))
	address := s.serveBodies(t)
	type target struct {
		method, path string
		access       access
	}
	targets := []target{{http.MethodPost, "/nothing", byOwners}, {http.MethodPost, "/api/nothing", byClients}, {http.MethodPatch, "/api-keys", byOwners}, {http.MethodPut, "/api/agents", byClients}}
	for _, r := range s.routes(t) {
		path := strings.ReplaceAll(strings.ReplaceAll(r.Path, ":", "x"), "*", "x")
		targets = append(targets, target{method: r.Method, path: path, access: accessTo(r.Path)})
	}
	var running sync.WaitGroup
	few := make(chan struct{}, 32)
	for _, to := range targets {
		for name, announced := range map[string]string{
			"a short body":     "Content-Length: 1000\r\n\r\n",
			"a part of a body": "Content-Length: 1000\r\n\r\nGET /healthz HTTP/1.1\r\nHost: portal.test\r\n\r\n",
			"50 MB":            "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 50000000\r\n\r\nx",
			"chunks":           "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
			"100-continue":     "Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n",
		} {
			if to.path == "/leaks" && to.method == http.MethodPost && name != "50 MB" {
				continue // nobody is refused before the report
			}
			running.Go(func() {
				few <- struct{}{}
				defer func() { <-few }()
				statuses := exchange(t, address, to.method+" "+to.path+" HTTP/1.1\r\nHost: portal.test\r\n"+announced)
				least := http.StatusSeeOther
				if to.access == byEveryone {
					least = http.StatusOK
				}
				if len(statuses) != 1 || statuses[0] < least || statuses[0] >= http.StatusInternalServerError {
					t.Errorf("%s %s with %s: responses %v", to.method, to.path, name, statuses)
				}
			})
		}
	}
	running.Wait()
}

func TestLargeBodiesAreRefusedByTheirLength(t *testing.T) {
	t.Parallel()
	s := newSystem(t, modelstest.SQLiteURL(t))
	c := s.tenant(t, "large")
	address := s.serveBodies(t)
	for _, to := range []string{
		"POST /api-keys HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nCookie: " + c.cookie.String(),
		"POST /login HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded",
		"POST /api/widget/token HTTP/1.1\r\nContent-Type: application/json\r\nAuthorization: Bearer " + c.secret,
		"POST /leaks HTTP/1.1",
	} {
		statuses := exchange(t, address, to+"\r\nHost: portal.test\r\nContent-Length: 50000000\r\n\r\n")
		if !slices.Equal(statuses, []int{http.StatusRequestEntityTooLarge}) {
			t.Errorf("%.30q: responses %v", to, statuses)
		}
	}
}

// A client that sends its requests with their bodies keeps its connection.
func TestARefusedRequestWithItsBodyKeepsTheConnection(t *testing.T) {
	t.Parallel()
	s := newSystem(t, modelstest.SQLiteURL(t))
	body := `{"agentId": "0198c2f4-7a31-7c6e-9d52-3f8be6a1c004"}`
	refused := "POST /api/widget/token HTTP/1.1\r\nHost: portal.test\r\nContent-Length: 51\r\n\r\n" + body
	statuses := exchange(t, s.serveBodies(t), refused+refused+"GET /healthz HTTP/1.1\r\nHost: portal.test\r\nConnection: close\r\n\r\n")
	if !slices.Equal(statuses, []int{http.StatusUnauthorized, http.StatusUnauthorized, http.StatusOK}) {
		t.Errorf("responses %v", statuses)
	}
}
