package chaos

import (
	"bytes"
	"errors"
	"net"
	"regexp"
	"sync"
	"time"
)

// linkMode is what a link does with bytes and with new connections.
type linkMode int

const (
	passing linkMode = iota
	cut              // connections are reset and new ones too
	silent           // nothing is forwarded until this ends, then all of it; new connections wait
)

// link is a TCP proxy to one server. It forwards by default.
type link struct {
	listener net.Listener
	target   string

	mu           sync.Mutex
	mode         linkMode
	delay        time.Duration // of everything, each way
	loseAnswers  int           // so many answers to a commit are replaced by a reset
	stallCommits int           // so many connections fall silent when the COMMIT of a revocation is sent
	tripped      int           // traps that have been sprung
	changed      chan struct{} // closed when mode changes
	relays       map[*relay]struct{}
	closed       bool
	running      sync.WaitGroup
}

// relay is one connection through a link.
type relay struct {
	client, server *net.TCPConn // server is nil until it is connected
	revoking       bool         // a transaction that revokes is open; guarded by the link's mu
	stalled        bool         // guarded by the link's mu
	gone           chan struct{}
	once           sync.Once
}

var errReset = errors.New("the link resets the connection")

func newLink(target string) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener, target: target, changed: make(chan struct{}), relays: map[*relay]struct{}{}}
	l.running.Go(l.accept)
	return l, nil
}

func (l *link) port() int { return l.listener.Addr().(*net.TCPAddr).Port }

// close ends all connections and waits for the goroutines.
func (l *link) close() {
	l.set(func() { l.closed, l.mode = true, cut })
	_ = l.listener.Close()
	l.running.Wait()
}

// heal makes the link forward again. Connections that a trap has stalled are reset.
func (l *link) heal() {
	l.set(func() {
		l.mode, l.delay, l.loseAnswers, l.stallCommits = passing, 0, 0, 0
		for r := range l.relays {
			if r.stalled {
				r.reset()
			}
		}
	})
}

// set changes the link's state under its lock.
func (l *link) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	close(l.changed)
	l.changed = make(chan struct{})
	if l.mode == cut {
		for r := range l.relays {
			r.reset()
		}
	}
}

// trips returns how many traps have been sprung since the last call.
func (l *link) trips() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.tripped
	l.tripped = 0
	return n
}

func (l *link) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		r := &relay{client: conn.(*net.TCPConn), gone: make(chan struct{})}
		l.mu.Lock()
		l.relays[r] = struct{}{}
		if l.mode == cut {
			r.reset()
		}
		l.mu.Unlock()
		l.running.Go(func() { l.serve(r) })
	}
}

func (l *link) serve(r *relay) {
	defer func() {
		r.reset()
		l.mu.Lock()
		delete(l.relays, r)
		l.mu.Unlock()
	}()
	if l.gate(r) != nil {
		return
	}
	conn, err := net.DialTimeout("tcp", l.target, time.Second)
	if err != nil {
		return
	}
	l.mu.Lock()
	r.server = conn.(*net.TCPConn)
	l.mu.Unlock()
	select {
	case <-r.gone: // reset before the server was known
		_ = conn.Close()
		return
	default:
	}
	var both sync.WaitGroup
	both.Go(func() { l.forward(r, r.server, r.client, l.beforeServer) })
	both.Go(func() { l.forward(r, r.client, r.server, l.beforeClient) })
	both.Wait()
}

// forward copies one way until either end is gone. Inspect sees each chunk first.
func (l *link) forward(r *relay, to, from *net.TCPConn, inspect func(*relay, []byte) error) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if inspect(r, buffer[:n]) != nil || l.gate(r) != nil {
				break
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			// What was received is delivered before the end is.
			_ = to.CloseWrite()
			return
		}
	}
	r.reset()
}

// gate returns when a chunk may pass, or an error when the connection is reset.
func (l *link) gate(r *relay) error {
	for {
		l.mu.Lock()
		mode, delay, changed := l.mode, l.delay, l.changed
		held := mode == silent || r.stalled
		l.mu.Unlock()
		if mode == cut {
			return errReset
		}
		if !held {
			return r.sleep(delay)
		}
		select {
		case <-r.gone:
			return errReset
		case <-changed:
		}
	}
}

// commitMessage is how a client sends COMMIT, in lower case and without the type of the message.
var commitMessage = []byte("\x00\x00\x00\x0bcommit\x00")

// revocation matches the statement that revokes a key.
var revocation = regexp.MustCompile(`UPDATE .*revoked_at"? = `)

func (l *link) beforeServer(r *relay, chunk []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.revoking = r.revoking || revocation.Match(chunk)
	if !bytes.Contains(bytes.ToLower(chunk), commitMessage) {
		return nil
	}
	if r.revoking && l.stallCommits > 0 {
		l.stallCommits--
		l.tripped++
		r.stalled = true
	}
	r.revoking = false
	return nil
}

// idle ends an answer after which the session is in no transaction.
var idle = []byte("Z\x00\x00\x00\x05I")

// beforeClient resets the connection in place of the answer to a write that has been committed.
func (l *link) beforeClient(_ *relay, chunk []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loseAnswers == 0 || !bytes.HasSuffix(chunk, idle) {
		return nil
	}
	for _, tag := range []string{"COMMIT\x00", "UPDATE ", "INSERT ", "DELETE "} {
		if bytes.Contains(chunk, []byte(tag)) {
			l.loseAnswers--
			l.tripped++
			return errReset
		}
	}
	return nil
}

func (r *relay) sleep(d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-r.gone:
		return errReset
	case <-time.After(d):
		return nil
	}
}

// reset ends the connection on both sides, without waiting for what is unsent. The caller holds the
// link's lock, or is the goroutine that serves r.
func (r *relay) reset() {
	r.once.Do(func() { close(r.gone) })
	for _, conn := range []*net.TCPConn{r.client, r.server} {
		if conn != nil {
			_ = conn.SetLinger(0)
			_ = conn.Close()
		}
	}
}
