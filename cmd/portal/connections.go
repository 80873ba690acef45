package main

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"portal/models/usage"
)

const (
	// maxConnections bounds the open connections of a server. A connection takes about 20 KiB.
	maxConnections = 4096
	// headerTime is how long the header of a request usually takes at most.
	headerTime = time.Second
)

// connections bounds the open connections of a server, in all and from each address. At a bound, a
// new connection takes the place of one that runs no request. If there is none, the new connection
// is closed. It is safe for concurrent use.
type connections struct {
	limit, fromAddress int

	mu     sync.Mutex
	open   map[net.Conn]*connection
	counts map[netip.Prefix]int // by address
	// Each is a *connection without the header of its first request, the oldest first.
	started list.List
	idle    list.List // of *connection between two requests, the longest idle first
	closed  float64   // because of a bound
}

// connection is an open connection, which is in one of the lists or runs a request.
type connection struct {
	net.Conn
	address netip.Prefix
	began   time.Time
	list    *list.List // nil while a request runs
	element *list.Element
}

// connectionLimit returns the bound of the connections, and how many files the process may open. At
// least half of the files remain for the database and for other servers.
func connectionLimit() (limit int, files uint64) {
	var open syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &open); err != nil {
		return maxConnections, 0
	}
	return int(min(maxConnections, open.Cur/2)), open.Cur
}

func newConnections(limit, fromAddress int) *connections {
	return &connections{limit: limit, fromAddress: fromAddress, open: map[net.Conn]*connection{}, counts: map[netip.Prefix]int{}}
}

// change implements [http.Server.ConnState].
func (l *connections) change(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if state == http.StateNew {
		l.add(conn)
		return
	}
	c, ok := l.open[conn]
	if !ok {
		return // closed because of a bound
	}
	switch state {
	case http.StateActive:
		c.move(nil)
	case http.StateIdle:
		c.move(&l.idle)
	default: // hijacked or closed
		l.remove(c)
	}
}

func (l *connections) add(conn net.Conn) {
	address := networkOf(conn.RemoteAddr())
	full := l.counts[address] >= l.fromAddress
	if full || len(l.open) >= l.limit {
		l.closed++
		if !l.replace(func(c *connection) bool { return !full || c.address == address }) {
			_ = conn.Close()
			return
		}
	}
	c := &connection{Conn: conn, address: address, began: time.Now()}
	c.move(&l.started)
	l.open[conn] = c
	l.counts[address]++
}

// replace closes one of the connections for which may reports true. If all of them run requests,
// replace reports false.
func (l *connections) replace(may func(*connection) bool) bool {
	first := func(of *list.List) *connection {
		for e := of.Front(); e != nil; e = e.Next() {
			if c := e.Value.(*connection); may(c) {
				return c
			}
		}
		return nil
	}
	victim := first(&l.started)
	// A new connection is not to blame: its header may be on the way.
	if victim == nil || time.Since(victim.began) < headerTime {
		if idle := first(&l.idle); idle != nil {
			victim = idle
		}
	}
	if victim == nil {
		return false
	}
	l.remove(victim)
	_ = victim.Close()
	return true
}

func (l *connections) remove(c *connection) {
	c.move(nil)
	delete(l.open, c.Conn)
	if l.counts[c.address]--; l.counts[c.address] == 0 {
		delete(l.counts, c.address)
	}
}

// countClosed returns the number of connections that were closed because of a bound.
func (l *connections) countClosed() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// move moves the connection to the end of another list, or out of its list.
func (c *connection) move(to *list.List) {
	if c.list != nil {
		c.list.Remove(c.element)
	}
	if c.list = to; to != nil {
		c.element = to.PushBack(c)
	}
}

// networkOf returns the network of a client.
func networkOf(address net.Addr) netip.Prefix {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	return usage.Network(tcp.AddrPort().Addr())
}
