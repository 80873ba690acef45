package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
)

// flood is a crowd of API clients that send requests without a pause.
type flood struct {
	ok, refused, closed atomic.Int64 // responses, refusals and closed connections
	wrong               sync.Map     // unexpected responses

	stop chan struct{}
	done sync.WaitGroup
}

func startFlood(clients int, address, key string) *flood {
	f := &flood{stop: make(chan struct{})}
	request := fmt.Sprintf("GET /api/agents HTTP/1.1\r\nHost: portal\r\nAuthorization: Bearer %s\r\n\r\n", key)
	for range clients {
		f.done.Go(func() {
			for {
				select {
				case <-f.stop:
					return
				default:
					f.connect(address, request)
				}
			}
		})
	}
	return f
}

// connect sends requests on one connection until it is closed.
func (f *flood) connect(address, request string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		f.closed.Add(1)
		time.Sleep(50 * time.Millisecond)
		return
	}
	defer conn.Close()
	reader := bufio.NewReaderSize(conn, 1024)
	for {
		select {
		case <-f.stop:
			return
		default:
		}
		_ = conn.SetDeadline(time.Now().Add(startTimeout))
		if _, err = conn.Write([]byte(request)); err != nil {
			f.closed.Add(1)
			return
		}
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			f.closed.Add(1)
			time.Sleep(50 * time.Millisecond)
			return
		}
		_ = response.Body.Close()
		switch {
		case response.StatusCode == http.StatusOK:
			f.ok.Add(1)
		case response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != "":
			f.refused.Add(1)
			time.Sleep(200 * time.Millisecond) // less than it should
		default:
			f.wrong.Store(response.Status, true)
		}
		if response.Close {
			time.Sleep(50 * time.Millisecond)
			return
		}
	}
}

func (f *flood) end() {
	close(f.stop)
	f.done.Wait()
}

// The flood sends ten times as many concurrent requests as may use the database.
func TestAFloodOfTheAPIIsBoundedAndLeavesThePortalUsable(t *testing.T) {
	t.Parallel()
	databaseURL := modelstest.PostgresURL(t)
	account := createAccount(t, modelstest.Open(t, databaseURL, models.Options{}))
	i := startBuilt(t, append(databaseEnv(databaseURL), testSecret, anyPort, "PORTAL_RATE_LIMIT=off"))
	v := newVisitor(t)
	v.signIn(i, testEmail, testPassword)

	flood := startFlood(10*256, strings.TrimPrefix(i.URL, "http://"), account.secret)
	eventually(t, "the server refuses requests", func() bool { return flood.refused.Load() > 1000 })
	pages := map[int]int{}
	for began, n := time.Now(), 0; n < 20 || time.Since(began) < *floodTime; n++ {
		response, err := v.browser.Get(i.URL + "/api-keys")
		if err != nil {
			pages[0]++
			continue
		}
		_ = response.Body.Close()
		pages[response.StatusCode]++
	}
	flood.end()
	t.Logf("answered %d, refused %d, closed %d; pages by status: %v",
		flood.ok.Load(), flood.refused.Load(), flood.closed.Load(), pages)
	flood.wrong.Range(func(status, _ any) bool {
		t.Errorf("a response is %s", status)
		return true
	})
	if flood.ok.Load() < 100 {
		t.Errorf("only %d requests were answered", flood.ok.Load())
	}
	if total := pages[http.StatusOK] + pages[http.StatusServiceUnavailable] + pages[0]; pages[http.StatusOK]*4 < total*3 {
		t.Errorf("pages by status during the flood: %v", pages)
	}
	if runtime.GOOS == "linux" {
		if peak, limit := peakMemory(t, i.Process.Pid), 400<<20; peak > limit {
			t.Errorf("the peak memory was %d MiB, want at most %d", peak>>20, limit>>20)
		}
	}
	for n := range 100 {
		if got := i.askAPI(t, account.secret); got != http.StatusOK {
			t.Fatalf("request %d after the flood: status %d", n+1, got)
		}
	}
	v.get(i, "/api-keys")
	i.stop(t)
}

// The attacker begins 5,300 requests and finishes none of them.
func TestHalfOpenRequestsFromOneAddressShutNobodyOut(t *testing.T) {
	t.Parallel()
	i := start(t, []string{"DATABASE_URL=" + modelstest.SQLiteURL(t), anyPort, "PORTAL_METRICS_ADDR=127.0.0.1:0"})
	address := strings.TrimPrefix(i.URL, "http://")
	attacker := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	neighbor := &http.Client{Transport: &http.Transport{}} // keeps its connection
	visit := func(client *http.Client, url string) {
		t.Helper()
		response, err := client.Get(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			return
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", url, response.StatusCode)
		}
	}
	var ports []string
	traced := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		ports = append(ports, info.Conn.LocalAddr().String())
	}})
	kept := modelstest.Value(http.NewRequestWithContext(traced, http.MethodGet, i.URL+"/login", http.NoBody))(t)
	send := func() {
		t.Helper()
		response := modelstest.Value(neighbor.Do(kept))(t)
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	send()
	for n := range 5300 {
		conn := modelstest.Value(attacker.DialContext(t.Context(), "tcp", address))(t)
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = fmt.Fprint(conn, "GET /login HTTP/1.1\r\nHost: ")
		if n%500 == 0 {
			visit(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, i.URL+"/readyz")
		}
	}
	visit(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, i.URL+"/login")
	visit(http.DefaultClient, i.metrics+"/healthz")
	visit(http.DefaultClient, i.metrics+"/readyz")
	send()
	if ports[0] != ports[1] {
		t.Error("the connection of another client was closed")
	}
	i.stop(t)
}
