package webhooks_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"portal/models/modelstest"
	"portal/models/webhooks"
)

// names is a DNS server for every name.
type names struct {
	mu        sync.Mutex
	addresses []string
	asked     int
}

func (n *names) resolve(addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses = addresses
}

// serveNames makes the process resolve names by a server of its own until the test ends.
func serveNames(t *testing.T) *names {
	t.Helper()
	n := &names{}
	conn := modelstest.Value(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	go func() {
		buffer := make([]byte, 1500)
		for {
			size, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if answer := n.answer(buffer[:size]); answer != nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = conn.Close()
	})
	return n
}

func (n *names) answer(query []byte) []byte {
	var message dnsmessage.Message
	if message.Unpack(query) != nil || len(message.Questions) == 0 {
		return nil
	}
	message.Response, message.Additionals = true, nil
	n.mu.Lock()
	defer n.mu.Unlock()
	if question := message.Questions[0]; question.Type == dnsmessage.TypeA {
		n.asked++
		for _, address := range n.addresses {
			message.Answers = append(message.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 0},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(address).As4()},
			})
		}
	}
	answer, _ := message.Pack()
	return answer
}

// connections counts those of a server at an address.
func connections(t *testing.T, address string) (port string, count *atomic.Int64) {
	t.Helper()
	count = &atomic.Int64{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(ok))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			count.Add(1)
		}
	}
	modelstest.Must(t, server.Listener.Close())
	server.Listener = modelstest.Value(net.Listen("tcp", address))(t)
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	modelstest.Must(t, err)
	return port, count
}

// Whatever a name resolves to, at that moment and in any order, a forbidden address gets no
// connection.
func TestNamesWithForbiddenAddresses(t *testing.T) {
	resolver := serveNames(t)
	port, allowed := connections(t, "127.0.0.1:0")
	_, internal := connections(t, "127.0.0.2:"+port)
	guard := &webhooks.Guard{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	eachDatabase(t, guard, func(t *testing.T, in *instance) {
		endpoint, _ := in.add(in.account.ID, "https://receiver.example.com:"+port+"/")
		in.run(in.store)
		for i, step := range []struct {
			addresses []string
			reaches   int64
		}{
			{[]string{"127.0.0.1"}, 1},
			// The name has another address than a moment ago.
			{[]string{"127.0.0.2"}, 0},
			{[]string{"127.0.0.2", "127.0.0.1"}, 1},
			{[]string{"127.0.0.1", "127.0.0.2"}, 1},
		} {
			before := allowed.Load()
			resolver.resolve(step.addresses...)
			in.clock.Advance(time.Millisecond) // so that the list has an order
			in.agent(in.account.ID)
			modelstest.Eventually(t, "the attempt has failed, because the certificate is not valid", func() bool {
				deliveries := in.deliveries(endpoint)
				return len(deliveries) == i+1 && deliveries[0].Response != ""
			})
			if reached := allowed.Load() - before; reached != step.reaches || internal.Load() != 0 {
				t.Errorf("%v: %d connections, %d to the forbidden address", step.addresses, reached, internal.Load())
			}
		}
	})
	if resolver.asked == 0 {
		t.Error("no name was resolved")
	}
}
