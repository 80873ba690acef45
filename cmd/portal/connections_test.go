package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// limitedServer serves with room for two connections and one refusal. Requests of /wait run until
// the end of the test.
func limitedServer(t *testing.T) (address string, limit *connections) {
	t.Helper()
	limit = newConnections(2, 1)
	end := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if limit.overloaded(r) {
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path == "/wait" {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-end
		}
	}))
	limit.attach(server.Config)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	return server.Listener.Addr().String(), limit
}

// request sends a request on a new connection. It returns the connection and the status, which is 0
// if the server closes the connection.
func request(t *testing.T, address, path string) (conn net.Conn, status int) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(startTimeout))
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: portal\r\n\r\n", path); err != nil {
		return conn, 0
	}
	// The response may have no end.
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return conn, 0
	}
	if _, err := fmt.Sscanf(line, "HTTP/1.1 %d", &status); err != nil {
		t.Fatalf("the response begins with %q", line)
	}
	return conn, status
}

func TestAConnectionTakesThePlaceOfAnIdleOne(t *testing.T) {
	t.Parallel()
	address, limit := limitedServer(t)
	one, _ := request(t, address, "/")
	eventually(t, "the server sees that it is idle", func() bool {
		limit.mu.Lock()
		defer limit.mu.Unlock()
		return len(limit.idle) == 1
	})
	if _, got := request(t, address, "/wait"); got != http.StatusOK {
		t.Fatalf("the second connection gets %d", got)
	}
	if _, got := request(t, address, "/wait"); got != http.StatusOK {
		t.Errorf("the third connection gets %d", got)
	}
	if _, err := io.Copy(io.Discard, one); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the idle connection is still open: %v", err)
	}
}

func TestConnectionsAboveTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	address, limit := limitedServer(t)
	request(t, address, "/wait")
	request(t, address, "/wait")
	waiting, err := net.Dial("tcp", address) // takes the place of the one refusal
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server has accepted it", func() bool {
		limit.mu.Lock()
		defer limit.mu.Unlock()
		return limit.open == 3
	})
	if _, got := request(t, address, "/"); got != 0 {
		t.Errorf("a connection above both limits gets %d", got)
	}
	_ = waiting.Close()
	eventually(t, "a refused connection gets 503", func() bool {
		_, got := request(t, address, "/")
		return got == http.StatusServiceUnavailable
	})
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(startTimeout); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout: %s", what)
		}
	}
}
