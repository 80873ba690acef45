package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

// startProxy runs the proxy of compose.yaml in front of two instances, and returns its URL.
func startProxy(t *testing.T, instances ...string) (url string) {
	t.Helper()
	address := freeAddress(t)
	g := &gateway{Visitor: modelstest.NewVisitor(t, ""), t: t}
	g.runCaddy(address, strings.NewReplacer(":8080 {", "http://"+address+" {",
		"portal-1:8080", instances[0], "portal-2:8080", instances[1],
		"persist_config off", ""). // Debian's Caddy is too old for this option
		Replace(readCompose(t, composeSecrets).Configs["proxy"].Content))
	modelstest.Eventually(t, "the proxy uses the instances", func() bool { return status(g.URL+"/readyz") == http.StatusOK })
	return g.URL
}

func freeAddress(t *testing.T) string {
	t.Helper()
	return modelstest.Value(subprocess.FreeAddress())(t)
}

func TestNoRequestFailsWhileInstancesRestartOneByOne(t *testing.T) {
	t.Parallel()
	databaseURL := modelstest.PostgresURL(t)
	addresses := []string{freeAddress(t), freeAddress(t)}
	env := []string{"DATABASE_URL=" + databaseURL, testSecret, "PORTAL_BASE_URL=http://portal.test"}
	var instances []*instance
	for _, address := range addresses {
		instances = append(instances, start(t, append(env, "PORTAL_ADDR="+address)))
	}
	proxy := startProxy(t, addresses...)

	stop := make(chan struct{})
	var clients sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got := status(proxy + "/login")
				mu.Lock()
				statuses[got]++
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	for i := range instances {
		instances[i].stop(t)
		instances[i] = start(t, append(env, "PORTAL_ADDR="+addresses[i]))
		modelstest.Eventually(t, "the proxy uses the instance again", func() bool {
			return strings.Contains(instances[i].stderr.String(), `"/login"`)
		})
	}
	// A crash gives the proxy no warning.
	instances[0].Kill()
	time.Sleep(time.Second)
	close(stop)
	clients.Wait()
	if statuses[http.StatusOK] < 100 || len(statuses) != 1 {
		t.Errorf("requests by status: %s", fmt.Sprint(statuses))
	}
}

// relay is a TCP proxy to a database that can be far away or hang.
type relay struct {
	url   string        // of the database through the relay
	delay time.Duration // in each direction; set before the first connection

	mu      sync.Mutex // is held for as long as the relay hangs
	hanging bool
}

func newRelay(t *testing.T, databaseURL string) *relay {
	t.Helper()
	target := modelstest.Value(url.Parse(databaseURL))(t)
	listener := modelstest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := target.Host
	target.Host = listener.Addr().String()
	r := &relay{url: target.String()}
	t.Cleanup(func() {
		_ = listener.Close()
		if r.hanging {
			r.mu.Unlock()
		}
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go r.connect(client, server)
		}
	}()
	return r
}

func (r *relay) connect(client net.Conn, address string) {
	server, err := net.Dial("tcp", address)
	if err != nil {
		_ = client.Close()
		return
	}
	go r.forward(server, client)
	r.forward(client, server)
}

func (r *relay) forward(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		time.Sleep(r.delay)
		r.mu.Lock()
		_, writeErr := to.Write(buffer[:n])
		r.mu.Unlock()
		if err != nil || writeErr != nil {
			return
		}
	}
}

// hang makes the relay keep its connections and forward nothing until the end of the test.
func (r *relay) hang() {
	r.mu.Lock()
	r.hanging = true
}
