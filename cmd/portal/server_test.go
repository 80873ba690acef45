package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"portal/models/modelstest"
)

// serverOf starts a server of the portal with this handler and returns its address.
func serverOf(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	listener := modelstest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	log := &modelstest.LogBuffer{}
	s := newServer("portal", listener, closeConnections(handler, t.Context().Done()), log.Logger())
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(func() { _ = s.Close() })
	return listener.Addr().String()
}

// The tests read the addresses from the log once the portal answers.
func TestThePortalStartsToServeLast(t *testing.T) {
	t.Parallel()
	log := &modelstest.LogBuffer{}
	servers := make([]server, 0, 2)
	for _, name := range []string{"portal", "metrics"} {
		listener := modelstest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
		modelstest.Must(t, listener.Close()) // the server fails, and all stop
		servers = append(servers, newServer(name, listener, http.NotFoundHandler(), log.Logger()))
	}
	if err := serveUntilDone(t.Context(), servers, log.Logger()); err == nil {
		t.Error("the servers did not fail")
	}
	if lines := strings.Split(log.String(), "\n"); !strings.Contains(lines[0], "metrics") || !strings.Contains(lines[1], "portal") {
		t.Errorf("the log is %s", log)
	}
}

// The portal must not close a connection before a balancer does.
func TestIdleConnectionsOutliveThoseOfBalancers(t *testing.T) {
	t.Parallel()
	listener := modelstest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	s := newServer("portal", listener, http.NotFoundHandler(), (&modelstest.LogBuffer{}).Logger())
	s.awaitProxies(nil)
	if s.IdleTimeout != 2*time.Minute {
		t.Errorf("without a proxy: %s", s.IdleTimeout)
	}
	s.awaitProxies([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	if s.IdleTimeout <= 900*time.Second {
		t.Errorf("behind a proxy: %s", s.IdleTimeout)
	}
}

func TestHeadersOfMoreThan20KiBAreRefused(t *testing.T) {
	t.Parallel()
	address := serverOf(t, func(http.ResponseWriter, *http.Request) {})
	for size, want := range map[int]int{20 << 10: http.StatusOK, 20<<10 + 1: http.StatusRequestHeaderFieldsTooLarge} {
		conn := dial(t, 1, address)
		begin, end := "GET / HTTP/1.1\r\nHost: portal\r\nX-Filler: ", "\r\n\r\n"
		modelstest.Value(io.WriteString(conn, begin+strings.Repeat("x", size-len(begin)-len(end))+end))(t)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		modelstest.Must(t, err)
		modelstest.Must(t, response.Body.Close())
		if response.StatusCode != want {
			t.Errorf("%d bytes: status %d, want %d", size, response.StatusCode, want)
		}
	}
}

// A proxy that goes by the Content-Length would take the second request for the body of the first.
func TestARequestWithTwoLengthsEndsItsConnection(t *testing.T) {
	t.Parallel()
	const second = "GET /second HTTP/1.1\r\nHost: portal\r\n\r\n"
	bodies := make(chan string, 2)
	address := serverOf(t, func(_ http.ResponseWriter, r *http.Request) {
		body := modelstest.Value(io.ReadAll(r.Body))(t)
		bodies <- r.URL.Path + " " + string(body)
	})
	conn := dial(t, 1, address)
	_ = conn.SetDeadline(time.Now().Add(startTimeout))
	modelstest.Value(io.WriteString(conn, "POST /first HTTP/1.1\r\nHost: portal\r\nContent-Length: 49\r\nTransfer-Encoding: chunked\r\n\r\n"+
		"2\r\nhi\r\n0\r\n\r\n"+second))(t)
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	modelstest.Must(t, err)
	modelstest.Must(t, response.Body.Close())
	if response.StatusCode != http.StatusOK || !response.Close {
		t.Errorf("status %d, close %v", response.StatusCode, response.Close)
	}
	if rest := modelstest.Value(io.ReadAll(reader))(t); len(rest) > 0 {
		t.Errorf("the second request has the response %q", rest)
	}
	if got := <-bodies; got != "/first hi" || len(bodies) > 0 {
		t.Errorf("the first request is %q, and %d more", got, len(bodies))
	}
}
