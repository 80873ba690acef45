package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

// startCompose runs the proxy of compose.yaml with its configuration, in front of instances at
// these addresses.
func (g *gateway) startCompose(config string, addresses map[string]string) {
	g.t.Helper()
	address := freeAddress(g.t)
	_, port, _ := net.SplitHostPort(address)
	config = strings.Replace(config, ":8080 {", ":"+port+" {\nbind 127.0.0.1", 1)
	// Debian's Caddy is too old for the last option.
	g.runCaddy(address, strings.Replace(replaceAll(config, addresses), "persist_config off", "", 1))
}

func freeAddress(t *testing.T) string {
	t.Helper()
	return modelstest.Value(subprocess.FreeAddress())(t)
}

// proxiedClient sends requests through one of the documented proxies until the test ends.
type proxiedClient struct {
	*gateway

	name, path string // no other client requests the path
}

// The proxies are in front of the same two instances. Half of the requests are POST requests, which
// proxies repeat only if their configuration says so.
func TestNoRequestFailsWhileInstancesRestartOneByOne(t *testing.T) {
	t.Parallel()
	databaseURL := modelstest.PostgresURL(t)
	account := createAccount(t, modelstest.Open(t, databaseURL, models.Options{}))
	addresses := []string{freeAddress(t), freeAddress(t)}
	env := []string{
		"DATABASE_URL=" + databaseURL, testSecret, "PORTAL_BASE_URL=https://portal.example.com", "PORTAL_WIDGET_TOKEN_ALG=ES256",
		"PORTAL_RATE_LIMIT=off", "PORTAL_TRUSTED_PROXIES=127.0.0.1/32",
	}
	var instances []*instance
	for _, address := range addresses {
		instances = append(instances, start(t, append(env, "PORTAL_ADDR="+address)))
	}
	var proxies []proxiedClient
	for _, p := range []struct {
		name, path, config string
		launch             func(*gateway, string, map[string]string)
	}{
		{"nginx", "/robots.txt", readFile(t, "operations/nginx.conf"), (*gateway).startNginx},
		{"HAProxy", "/.well-known/jwks.json", readFile(t, "operations/haproxy.cfg"), (*gateway).startHAProxy},
		{"Caddy", "/openapi.json", readCompose(t, composeSecrets).Configs["proxy"].Content, (*gateway).startCompose},
	} {
		g := &gateway{Visitor: tlsVisitor(t), t: t, portal: instances[0]}
		p.launch(g, p.config, map[string]string{
			"127.0.0.1:8080": addresses[0], "127.0.0.1:8081": addresses[1], "portal-1:8080": addresses[0], "portal-2:8080": addresses[1],
		})
		proxies = append(proxies, proxiedClient{gateway: g, name: p.name, path: p.path})
	}

	var clients sync.WaitGroup
	var stop, failing atomic.Bool
	var posting sync.RWMutex
	var mu sync.Mutex
	statuses := map[string]int{}
	var requests []*atomic.Int64 // of each client, those that have ended
	for _, proxy := range proxies {
		for range 2 {
			ended := &atomic.Int64{}
			requests = append(requests, ended)
			clients.Go(func() {
				for !stop.Load() {
					var got http.Response
					var text string
					// At random, because in turns each would go to one
					// instance.
					if rand.IntN(2) == 0 || !posting.TryRLock() {
						got, text = proxy.send(http.MethodGet, proxy.path, "", account.secret)
					} else {
						got, text = proxy.send(http.MethodPost, "/api/widget/token", `{"agentId":"`+account.agentID.String()+`"}`, account.secret)
						posting.RUnlock()
					}
					// No proxy can repeat a response that has begun.
					if text != io.ErrUnexpectedEOF.Error() || !failing.Load() {
						result := fmt.Sprint(proxy.name, " ", got.StatusCode)
						if got.StatusCode != http.StatusOK {
							result += " " + text
						}
						mu.Lock()
						statuses[result]++
						mu.Unlock()
					}
					ended.Add(1)
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
	}
	for i := range instances {
		instances[i].stop(t)
		instances[i] = start(t, append(env, "PORTAL_ADDR="+addresses[i]))
		// nginx sees at its next request that the instance is back.
		for _, proxy := range proxies[1:] {
			modelstest.Eventually(t, proxy.name+" uses the instance again", func() bool {
				return strings.Contains(instances[i].stderr.String(), `"route":"`+proxy.path+`"`)
			})
		}
	}
	// A frozen instance keeps its connections, and does not respond.
	responded := func(proxy proxiedClient) (n int) {
		mu.Lock()
		defer mu.Unlock()
		return statuses[proxy.name+" 200"]
	}
	failing.Store(true)
	instances[0].signal(t, syscall.SIGSTOP)
	before := map[string]int{}
	for _, proxy := range proxies {
		before[proxy.name] = responded(proxy)
	}
	for _, proxy := range proxies {
		modelstest.Eventually(t, proxy.name+" uses the other instance", func() bool { return responded(proxy) >= before[proxy.name]+10 })
	}
	instances[0].signal(t, syscall.SIGCONT)
	// A request that waited for it may be too old for its proxy to repeat it after the crash.
	for _, ended := range requests {
		waiting := ended.Load()
		modelstest.Eventually(t, "a client has its response", func() bool { return ended.Load() > waiting })
	}
	// A crash gives the proxies no warning. Requests that the instance has begun to process may
	// fail, unless they only read and their response has not begun.
	posting.Lock()
	instances[0].Kill()
	time.Sleep(time.Second)
	stop.Store(true)
	clients.Wait()
	instances[1].Kill()
	for _, proxy := range proxies {
		// HAProxy ends a connection of a client without a response if the portal resets its
		// own, unless the request is the connection's first.
		proxy.CloseIdleConnections()
		got, body := proxy.send(http.MethodPost, "/api/widget/token", "{}", account.secret)
		if got.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, `"UNAVAILABLE"`) || got.Header.Get("Retry-After") != "1" {
			t.Errorf("%s without a portal: %d %v %s", proxy.name, got.StatusCode, got.Header, body)
		}
		if statuses[proxy.name+" 200"] < 50 {
			t.Errorf("%s has responded to few requests", proxy.name)
		}
	}
	if len(statuses) != len(proxies) {
		t.Errorf("responses by proxy and status: %v", statuses)
		for _, proxy := range proxies {
			t.Log(proxy.log())
		}
		for _, i := range instances {
			t.Log(i.stderr.LineWith(`"level":"ERROR"`))
		}
	}
}

// status sends a request to the portal and returns the status of the response, 0 without one.
func (p proxiedClient) status(method, path, body, key string) int {
	response, _ := p.send(method, path, body, key)
	return response.StatusCode
}

// send sends a request to the portal. Without a whole response, the status is 0.
func (p proxiedClient) send(method, path, body, key string) (response http.Response, text string) {
	request, err := http.NewRequest(method, p.URL+path, strings.NewReader(body))
	if err != nil {
		return response, err.Error()
	}
	request.Host = "portal.example.com"
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	received, err := p.Do(request)
	if err != nil {
		return response, err.Error()
	}
	defer received.Body.Close()
	content, err := io.ReadAll(received.Body)
	if err != nil {
		return response, err.Error()
	}
	return *received, string(content)
}

func TestProxiesKeepTheOperatorAPIForThePlatform(t *testing.T) {
	t.Parallel()
	i := start(t, append(databaseEnv(modelstest.SQLiteURL(t)), anyPort, "PORTAL_OPERATOR_TOKEN="+goodSecret, "PORTAL_WIDGET_TOKEN_ALG=ES256"))
	for file, launch := range map[string]func(*gateway, string, map[string]string){"nginx.conf": (*gateway).startNginx, "haproxy.cfg": (*gateway).startHAProxy} {
		g := &gateway{Visitor: tlsVisitor(t), t: t, portal: i}
		launch(g, readFile(t, "operations/"+file), map[string]string{
			"127.0.0.1:8080": strings.TrimPrefix(i.URL, "http://"), "127.0.0.1:8081": freeAddress(t),
		})
		for address, want := range map[string]int{"127.0.0.1": http.StatusOK, "127.0.0.2": http.StatusNotFound} {
			stranger := proxiedClient{gateway: &gateway{Visitor: tlsVisitor(t)}}
			stranger.URL = g.URL
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
			stranger.Transport.(*http.Transport).DialContext = dialer.DialContext
			for _, path := range []string{"/operator/accounts", "/%6fperator/accounts"} {
				if got, body := stranger.send(http.MethodGet, path, "", goodSecret); got.StatusCode != want || want == http.StatusNotFound && !strings.Contains(body, `"NOT_FOUND"`) {
					t.Errorf("%s: %s from %s: %d %s", file, path, address, got.StatusCode, body)
				}
			}
			if got := stranger.status(http.MethodGet, "/login", "", ""); got != http.StatusOK {
				t.Errorf("%s: the portal from %s: %d", file, address, got)
			}
		}
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
