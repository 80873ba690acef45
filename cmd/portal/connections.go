package main

import (
	"container/list"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

const (
	// maxConnections bounds the open connections of a server. A connection takes about 20 KiB.
	maxConnections = 4096
	// maxUnread bounds the bytes of responses that wait for their clients. A page has at most
	// some hundred KiB.
	maxUnread = 32 << 20
	// headerTime is how long the header of a request usually takes at most, its body, and a
	// response.
	headerTime = time.Second
)

// connections bounds the open connections of a server, in all and from each address, and the bytes
// of responses that wait for their clients. At a bound, a new connection takes the place of one
// whose request is incomplete, whose client does not read its response, or that runs no request. If
// there is none, the new connection is closed. It is safe for concurrent use.
type connections struct {
	limit, fromAddress, unread int

	mu     sync.Mutex
	open   map[*connection]struct{}
	counts map[netip.Prefix]int // by address
	// Each is a *connection without the header of its first request, the oldest first.
	started list.List
	// Of *connection: with a request whose body is incomplete, with a response that is being
	// written, and between two requests; the longest first.
	receiving, writing, idle list.List
	written                  int     // bytes that are being written
	closed                   float64 // because of a bound
}

// connection is an open connection, which is in one of the lists or runs a request.
type connection struct {
	net.Conn
	bounds  *connections
	address netip.Prefix
	since   time.Time  // since when it is in the list
	list    *list.List // nil while a request runs
	element *list.Element
	closed  bool // because of a bound, or by the server
	size    int  // bytes that are being written
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

func newConnections(limit, fromAddress, unread int) *connections {
	return &connections{
		limit: limit, fromAddress: fromAddress, unread: unread,
		open: map[*connection]struct{}{}, counts: map[netip.Prefix]int{},
	}
}

// connectionKey is the key of the connection in the context of its requests.
type connectionKey struct{}

// bound bounds the connections of the server, which must serve a listener of listen.
func (l *connections) bound(server *http.Server) {
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connectionKey{}).(*connection); ok && r.Body != http.NoBody {
			c.move(&l.receiving)
			body := r.Body
			r = r.WithContext(r.Context()) // net/http goes by the type of its own body
			r.Body = &incomingBody{body, c}
		}
		next.ServeHTTP(w, r)
	})
	server.ConnState = l.change
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, conn)
	}
}

// listen returns the listener whose connections are bounded.
func (l *connections) listen(listener net.Listener) net.Listener { return boundedListener{listener, l} }

type boundedListener struct {
	net.Listener
	bounds *connections
}

// Accept implements [net.Listener].
func (l boundedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn, bounds: l.bounds, address: networkOf(conn.RemoteAddr())}, nil
}

type incomingBody struct {
	io.ReadCloser
	connection *connection
}

// Read implements [io.Reader].
func (b *incomingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil { // the end, or a failure
		b.connection.move(nil)
	}
	return n, err
}

// change implements [http.Server.ConnState].
func (l *connections) change(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*connection)
	if !ok {
		return // of another listener
	}
	switch state {
	case http.StateNew:
		l.add(c)
	case http.StateActive:
		c.move(nil)
	case http.StateIdle:
		c.move(&l.idle)
	default: // hijacked or closed
		l.mu.Lock()
		defer l.mu.Unlock()
		l.remove(c)
	}
}

func (l *connections) add(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := l.counts[c.address] >= l.fromAddress
	if full || len(l.open) >= l.limit {
		l.closed++
		if !l.replace(func(other *connection) bool { return !full || other.address == c.address }) {
			c.closed = true
			_ = c.Close()
			return
		}
	}
	l.open[c] = struct{}{}
	l.counts[c.address]++
	c.put(&l.started)
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
	var victim *connection
	for _, of := range []*list.List{&l.started, &l.receiving, &l.writing} {
		if c := first(of); c != nil && (victim == nil || c.since.Before(victim.since)) {
			victim = c
		}
	}
	// Not every client is to blame: the rest of its request may be on the way.
	if victim == nil || time.Since(victim.since) < headerTime {
		if victim = first(&l.idle); victim == nil {
			victim = first(&l.started)
		}
	}
	if victim == nil {
		return false
	}
	l.end(victim)
	return true
}

// end closes a connection because of a bound.
func (l *connections) end(c *connection) {
	l.remove(c)
	_ = c.Close()
}

func (l *connections) remove(c *connection) {
	if c.closed {
		return
	}
	c.put(nil)
	c.closed = true
	l.written -= c.size
	c.size = 0
	delete(l.open, c)
	if l.counts[c.address]--; l.counts[c.address] == 0 {
		delete(l.counts, c.address)
	}
}

// Write implements [net.Conn]. If too many bytes wait for their clients, a connection of the
// address with the most of them is closed: the one whose client takes the longest.
func (c *connection) Write(p []byte) (int, error) {
	before := c.beginWrite(len(p))
	defer c.endWrite(before)
	return c.Conn.Write(p)
}

// beginWrite returns the list in which the connection was.
func (c *connection) beginWrite(size int) (before *list.List) {
	l := c.bounds
	l.mu.Lock()
	defer l.mu.Unlock()
	before = c.list
	if c.closed {
		return before
	}
	c.put(&l.writing)
	c.size = size
	for l.written += size; l.written > l.unread; {
		l.closed++
		l.end(l.slowest())
	}
	return before
}

func (c *connection) endWrite(before *list.List) {
	c.bounds.mu.Lock()
	defer c.bounds.mu.Unlock()
	c.bounds.written -= c.size
	c.size = 0
	if !c.closed {
		c.put(before)
	}
}

// slowest returns the connection of the address with the most bytes that are being written whose
// client takes the longest. There must be one.
func (l *connections) slowest() (c *connection) {
	sizes := map[netip.Prefix]int{}
	for e := l.writing.Front(); e != nil; e = e.Next() {
		sizes[e.Value.(*connection).address] += e.Value.(*connection).size
	}
	for e := l.writing.Back(); e != nil; e = e.Prev() {
		if other := e.Value.(*connection); c == nil || sizes[other.address] >= sizes[c.address] {
			c = other
		}
	}
	return c
}

// countClosed returns the number of connections that were closed because of a bound.
func (l *connections) countClosed() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// move is put for a connection that may have been closed.
func (c *connection) move(to *list.List) {
	c.bounds.mu.Lock()
	defer c.bounds.mu.Unlock()
	if !c.closed {
		c.put(to)
	}
}

// put moves the connection to the end of another list, or out of its list.
func (c *connection) put(to *list.List) {
	if c.list != nil {
		c.list.Remove(c.element)
	}
	if c.list = to; to != nil {
		c.element, c.since = to.PushBack(c), time.Now()
	}
}

// networkBits is the length of the IPv6 networks that providers give to their customers.
const networkBits = 48

// networkOf returns the network of a client: its IPv4 address, or its IPv6 network.
func networkOf(address net.Addr) netip.Prefix {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	client := tcp.AddrPort().Addr().Unmap().WithZone("")
	network, _ := client.Prefix(min(client.BitLen(), networkBits)) // the length is valid
	return network
}
