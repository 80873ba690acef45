package main

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"portal/models/modelstest"
)

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
