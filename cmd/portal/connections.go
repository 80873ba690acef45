package main

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// The limits of a server's open connections. A connection takes about 20 KiB.
const (
	// maxConnections is the maximum number of connections that are served.
	maxConnections = 4096
	// maxRefusals is the number of further connections that stay open to receive a 503. Others
	// are closed.
	maxRefusals = 1024
)

// connections limits the open connections of a server. A connection above the limit takes the place
// of an idle one, which is closed. If none is idle, the requests of the new connection are refused.
// It is safe for concurrent use.
type connections struct {
	limit, refusals int

	mu   sync.Mutex
	open int
	idle map[net.Conn]struct{}
}

// refusedKey is the context key of a connection whose requests are refused.
type refusedKey struct{}

func newConnections(limit, refusals int) *connections {
	return &connections{limit: limit, refusals: refusals, idle: map[net.Conn]struct{}{}}
}

// attach makes the server report its connections to l.
func (l *connections) attach(s *http.Server) {
	s.ConnContext, s.ConnState = l.accept, l.change
}

// overloaded reports whether the request's connection exceeds the limit.
func (l *connections) overloaded(r *http.Request) bool {
	return r.Context().Value(refusedKey{}) != nil
}

// accept implements [http.Server.ConnContext].
func (l *connections) accept(ctx context.Context, conn net.Conn) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	if l.open <= l.limit {
		return ctx
	}
	for other := range l.idle {
		delete(l.idle, other)
		_ = other.Close()
		return ctx
	}
	if l.open > l.limit+l.refusals {
		_ = conn.Close()
	}
	return context.WithValue(ctx, refusedKey{}, true)
}

// change implements [http.Server.ConnState].
func (l *connections) change(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew: // accept has counted it
	case http.StateIdle:
		l.idle[conn] = struct{}{}
	case http.StateActive:
		delete(l.idle, conn)
	case http.StateHijacked, http.StateClosed:
		delete(l.idle, conn)
		l.open--
	}
}
