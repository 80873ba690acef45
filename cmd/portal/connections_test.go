package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"portal/models/modelstest"
)

// largeResponse is more than the buffers of a connection take.
const largeResponse = 16 << 20

// boundedServer serves at most four connections, and three from one address. A request of /wait
// runs until the end of the test, one of /read until its body is complete, and one of /large has a
// response of largeResponse bytes. Two of them may wait for their clients.
func boundedServer(t *testing.T) (address string, bounds *connections) {
	t.Helper()
	bounds = newConnections(4, 3, 2*largeResponse)
	end := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/wait":
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-end
		case "/read":
			_, _ = io.Copy(io.Discard, r.Body)
		case "/large":
			_, _ = w.Write(make([]byte, largeResponse))
		}
	}))
	server.Listener = bounds.listen(server.Listener)
	bounds.bound(server.Config)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	return server.Listener.Addr().String(), bounds
}

// dial opens a connection from 127.0.0.HOST.
func dial(t *testing.T, host byte, address string) net.Conn {
	t.Helper()
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, host)}}
	conn := modelstest.Value(from.DialContext(t.Context(), "tcp", address))(t)
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(startTimeout))
	return conn
}

// request sends a request and reports whether the response begins with status 200.
func request(conn net.Conn, path string) bool {
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: portal\r\n\r\n", path); err != nil {
		return false
	}
	line, err := bufio.NewReader(conn).ReadString('\n') // the response may have no end
	return err == nil && line == "HTTP/1.1 200 OK\r\n"
}

// awaitCounts waits until the server has seen these connections.
func awaitCounts(t *testing.T, bounds *connections, started, idle int) {
	t.Helper()
	await(t, bounds, "the server has seen the connections", func() bool {
		return bounds.started.Len() == started && bounds.idle.Len() == idle
	})
}

func TestAConnectionTakesThePlaceOfTheLongestIdleOne(t *testing.T) {
	t.Parallel()
	address, bounds := boundedServer(t)
	var conns []net.Conn
	for n := range 4 {
		conns = append(conns, dial(t, byte(1+n%2), address))
		request(conns[n], "/")
		awaitCounts(t, bounds, 0, n+1)
	}
	if !request(dial(t, 3, address), "/wait") {
		t.Error("the fifth connection gets no response")
	}
	if _, err := io.Copy(io.Discard, conns[0]); err != nil {
		t.Errorf("the first connection is still open: %v", err)
	}
	for n, conn := range conns[1:] {
		if !request(conn, "/") {
			t.Errorf("connection %d was closed", n+2)
		}
	}
}

func TestAConnectionWithoutARequestIsClosedBeforeAnIdleOne(t *testing.T) {
	t.Parallel()
	address, bounds := boundedServer(t)
	idle := dial(t, 1, address)
	request(idle, "/")
	for range 3 {
		_, _ = fmt.Fprint(dial(t, 2, address), "GET / HTTP/1.1\r\n")
	}
	awaitCounts(t, bounds, 3, 1)
	time.Sleep(headerTime) // their headers are late
	for range 2 {
		if !request(dial(t, 3, address), "/wait") {
			t.Error("a new connection gets no response")
		}
	}
	if !request(idle, "/") {
		t.Error("the idle connection was closed")
	}
}

// await waits until the connections of the server are so.
func await(t *testing.T, bounds *connections, what string, holds func() bool) {
	t.Helper()
	modelstest.Eventually(t, what, func() bool {
		bounds.mu.Lock()
		defer bounds.mu.Unlock()
		return holds()
	})
}

// awaitLarge waits until a response of largeResponse bytes waits for its client. Its first bytes,
// with the header, do not wait.
func awaitLarge(t *testing.T, bounds *connections) {
	t.Helper()
	await(t, bounds, "a response waits", func() bool { return bounds.written > largeResponse/2 })
}

func TestAConnectionTakesThePlaceOfOneWithASlowBody(t *testing.T) {
	t.Parallel()
	address, bounds := boundedServer(t)
	var conns []net.Conn
	for n := range 4 {
		conns = append(conns, dial(t, byte(1+n%2), address))
		_, _ = fmt.Fprint(conns[n], "POST /read HTTP/1.1\r\nHost: portal\r\nContent-Length: 2\r\n\r\nx")
		await(t, bounds, "the server has seen the requests", func() bool { return bounds.receiving.Len() == n+1 })
	}
	time.Sleep(headerTime) // their bodies are late
	if !request(dial(t, 3, address), "/wait") {
		t.Error("the fifth connection gets no response")
	}
	if rest, err := io.ReadAll(conns[0]); err == nil && len(rest) > 0 {
		t.Errorf("the first connection is still open: %q", rest)
	}
	for n, conn := range conns[1:] {
		_, _ = fmt.Fprint(conn, "x")
		if line, err := bufio.NewReader(conn).ReadString('\n'); line != "HTTP/1.1 200 OK\r\n" {
			t.Errorf("connection %d was closed: %v", n+2, err)
		}
	}
}

func TestAConnectionTakesThePlaceOfOneThatReadsNoResponse(t *testing.T) {
	t.Parallel()
	address, bounds := boundedServer(t)
	_, _ = fmt.Fprint(dial(t, 1, address), "GET /large HTTP/1.1\r\nHost: portal\r\n\r\n")
	awaitLarge(t, bounds)
	for range 3 {
		if !request(dial(t, 2, address), "/wait") {
			t.Error("a connection gets no response")
		}
	}
	time.Sleep(headerTime) // the reader is late
	if !request(dial(t, 3, address), "/wait") {
		t.Error("the fifth connection gets no response")
	}
}

func TestResponsesThatWaitForTheirClientsAreBounded(t *testing.T) {
	t.Parallel()
	address, bounds := boundedServer(t)
	large := func(host byte) net.Conn {
		conn := dial(t, host, address)
		_, _ = fmt.Fprint(conn, "GET /large HTTP/1.1\r\nHost: portal\r\n\r\n")
		return conn
	}
	other := large(2)
	awaitLarge(t, bounds)
	for range 3 {
		large(1)
	}
	modelstest.Eventually(t, "the responses are bounded", func() bool { return bounds.countClosed() == 2 })
	if n, _ := io.Copy(io.Discard, io.LimitReader(other, largeResponse)); n != largeResponse {
		t.Errorf("the client at another address gets %d bytes", n)
	}
	if !request(dial(t, 3, address), "/") {
		t.Error("a new connection gets no response")
	}
}

func TestConnectionsAreCountedByNetwork(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.1": "192.0.2.1/32", "2001:db8:1:2::3": "2001:db8:1::/48",
	} {
		if got := networkOf(&net.TCPAddr{IP: net.ParseIP(address)}).String(); got != want {
			t.Errorf("the network of %s is %s, want %s", address, got, want)
		}
	}
}

func TestConnectionsFromOneAddressReplaceEachOther(t *testing.T) {
	t.Parallel()
	address, bounds := boundedServer(t)
	idle := dial(t, 1, address)
	request(idle, "/")
	for range 10 {
		_, _ = fmt.Fprint(dial(t, 2, address), "GET / HTTP/1.1\r\n")
	}
	modelstest.Eventually(t, "seven connections are closed", func() bool { return bounds.countClosed() == 7 })
	awaitCounts(t, bounds, 3, 1)
	if !request(idle, "/") {
		t.Error("the connection from another address was closed")
	}
}

func TestRunningRequestsAreNotInterrupted(t *testing.T) {
	t.Parallel()
	address, bounds := boundedServer(t)
	for n := range 3 {
		if !request(dial(t, 1, address), "/wait") {
			t.Fatalf("connection %d gets no response", n+1)
		}
	}
	if request(dial(t, 1, address), "/") {
		t.Error("a connection above the bound of its address gets a response")
	}
	if !request(dial(t, 2, address), "/wait") {
		t.Error("a connection from another address gets no response")
	}
	if request(dial(t, 3, address), "/") {
		t.Error("a connection above the bound of the server gets a response")
	}
	if got := bounds.countClosed(); got != 2 {
		t.Errorf("%v connections were closed, want 2", got)
	}
}

func TestConnectionsLeaveFileDescriptorsForTheRest(t *testing.T) {
	t.Parallel()
	command := portalCommand(t, []string{anyPort})
	command.Args = append([]string{"bash", "-c", `ulimit -n 64; exec "$0"`}, command.Path)
	command.Path = modelstest.Value(exec.LookPath("bash"))(t)
	i := launchCommand(t, command)
	i.awaitReady(t)
	for range 100 {
		dial(t, 1, strings.TrimPrefix(i.URL, "http://"))
	}
	i.Get("/readyz").Is(http.StatusOK)
	if log := i.stderr.String(); strings.Contains(log, "too many open files") || !strings.Contains(log, "the limit of open files, 64,") {
		t.Error(log)
	}
}
