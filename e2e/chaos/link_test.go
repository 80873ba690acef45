package chaos

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"portal/models/modelstest"
)

// linkMode is how a link treats bytes and new connections.
type linkMode int

const (
	passing linkMode = iota
	cut              // all connections are reset, new ones too
	silent           // bytes and new connections wait until the mode changes
)

// link is a TCP proxy to one PostgreSQL server. A trap is a fault that waits for a COMMIT.
type link struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu            sync.Mutex
	changed       *sync.Cond // of mode and of the state of a relay
	mode          linkMode
	loseResponses int  // trap: how many responses to a COMMIT to replace with a reset
	stallCommits  int  // trap: how many connections to stall at the COMMIT of a revocation
	triggered     bool // a trap
	relays        map[*relay]struct{}
}

// relay is one connection through a link, whose mu guards the fields.
type relay struct {
	client, server *net.TCPConn // server is nil until it is connected
	revoking       bool         // the open transaction revokes a key
	stalled, gone  bool
}

var errReset = errors.New("the link has reset the connection")

// newLink returns a link to a port of this machine, until the test ends.
func newLink(t *testing.T, target int) *link {
	t.Helper()
	l := &link{
		listener: modelstest.Value(net.Listen("tcp", "127.0.0.1:0"))(t), target: "127.0.0.1:" + strconv.Itoa(target),
		relays: map[*relay]struct{}{},
	}
	l.changed = sync.NewCond(&l.mu)
	l.running.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

func (l *link) port() int { return l.listener.Addr().(*net.TCPAddr).Port }

// close resets all connections and waits for the goroutines.
func (l *link) close() {
	l.set(func() { l.mode = cut })
	_ = l.listener.Close()
	l.running.Wait()
}

// heal makes the link forward again. It resets the connections that a trap has stalled.
func (l *link) heal() {
	l.set(func() {
		l.mode, l.loseResponses, l.stallCommits = passing, 0, 0
		for r := range l.relays {
			if r.stalled {
				l.reset(r)
			}
		}
	})
}

// set calls change with the lock held, and applies the new mode to all connections.
func (l *link) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	if l.mode == cut {
		for r := range l.relays {
			l.reset(r)
		}
	}
	l.changed.Broadcast()
}

// takeTriggered reports whether a trap was triggered since the last call.
func (l *link) takeTriggered() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	triggered := l.triggered
	l.triggered = false
	return triggered
}

func (l *link) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		r := &relay{client: conn.(*net.TCPConn)}
		l.set(func() { l.relays[r] = struct{}{} })
		l.running.Go(func() { l.serve(r) })
	}
}

func (l *link) serve(r *relay) {
	defer l.set(func() {
		l.reset(r)
		delete(l.relays, r)
	})
	if l.waitWhileBlocked(r) != nil {
		return
	}
	conn, err := net.DialTimeout("tcp", l.target, time.Second)
	if err != nil {
		return
	}
	l.set(func() { r.server = conn.(*net.TCPConn) })
	if l.waitWhileBlocked(r) != nil { // reset before the connection to the server existed
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.forward(r, r.server, r.client, l.beforeServer) })
	both.Go(func() { l.forward(r, r.client, r.server, l.beforeClient) })
	both.Wait()
}

// forward copies in one direction until either side closes. It calls inspect with each chunk first.
func (l *link) forward(r *relay, to, from *net.TCPConn, inspect func(*relay, []byte) error) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if inspect(r, buffer[:n]) != nil || l.waitWhileBlocked(r) != nil {
				break
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			// Bytes that were sent before the end must still arrive.
			_ = to.CloseWrite()
			return
		}
	}
	l.set(func() { l.reset(r) })
}

// waitWhileBlocked blocks while the link is silent or the connection stalled. It returns an error
// if the connection is reset.
func (l *link) waitWhileBlocked(r *relay) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !r.gone && (l.mode == silent || r.stalled) {
		l.changed.Wait()
	}
	if r.gone {
		return errReset
	}
	return nil
}

// reset closes the connection on both sides and discards unsent bytes. The caller holds the lock.
func (l *link) reset(r *relay) {
	r.gone = true
	for _, conn := range []*net.TCPConn{r.client, r.server} {
		if conn != nil {
			_ = conn.SetLinger(0)
			_ = conn.Close()
		}
	}
}

// commitMessage is the message for COMMIT in lower case, without its first byte, the type.
var commitMessage = []byte("\x00\x00\x00\x0bcommit\x00")

// revocation matches the statement that revokes a key.
var revocation = regexp.MustCompile(`UPDATE .*revoked_at"? = `)

// beforeServer stalls the connection if chunk is the COMMIT of a revocation and the trap is set.
func (l *link) beforeServer(r *relay, chunk []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.revoking = r.revoking || revocation.Match(chunk)
	if !bytes.Contains(bytes.ToLower(chunk), commitMessage) {
		return nil
	}
	if r.revoking && l.stallCommits > 0 {
		l.stallCommits--
		l.triggered = true
		r.stalled = true
	}
	r.revoking = false
	return nil
}

// idle ends a response after which no transaction is open.
var idle = []byte("Z\x00\x00\x00\x05I")

// beforeClient returns errReset for the response to a committed write if the trap is set.
func (l *link) beforeClient(_ *relay, chunk []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loseResponses == 0 || !bytes.HasSuffix(chunk, idle) {
		return nil
	}
	for _, tag := range []string{"COMMIT\x00", "UPDATE ", "INSERT ", "DELETE "} {
		if bytes.Contains(chunk, []byte(tag)) {
			l.loseResponses--
			l.triggered = true
			return errReset
		}
	}
	return nil
}

const (
	update    = "Q\x00\x00\x00\x40UPDATE \"api_keys\" SET \"revoked_at\" = 'now' WHERE id = 'x'\x00"
	commit    = "Q\x00\x00\x00\x0bcommit\x00"
	committed = "C\x00\x00\x00\x0bCOMMIT\x00Z\x00\x00\x00\x05I"
)

// TestLink sends an update and, during a fault, a COMMIT to a server that responds to each as to a
// COMMIT. The client closes its connection before the link is healed.
func TestLink(t *testing.T) {
	reset := syscall.ECONNRESET
	for name, test := range map[string]struct {
		fault          func(*link)
		response       error // to the COMMIT
		before, healed string
		trapped        bool
	}{
		"forwards":            {func(*link) {}, nil, update + commit, update + commit, false},
		"loses a response":    {func(l *link) { l.loseResponses = 1 }, reset, update + commit, update + commit, true},
		"stalls a revocation": {func(l *link) { l.stallCommits = 1 }, os.ErrDeadlineExceeded, update, update, true},
		"is silent":           {func(l *link) { l.mode = silent }, os.ErrDeadlineExceeded, update, update + commit, false},
		"resets connections":  {func(l *link) { l.mode = cut }, reset, update, update, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := modelstest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
			defer server.Close()
			var received modelstest.LogBuffer
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				conn, err := server.Accept()
				for chunk := make([]byte, 1024); err == nil; {
					var n int
					n, err = conn.Read(chunk)
					_, _ = received.Write(chunk[:n])
					_, _ = conn.Write([]byte(committed))
				}
			}()
			l := newLink(t, server.Addr().(*net.TCPAddr).Port)
			conn := modelstest.Value(net.Dial("tcp", l.listener.Addr().String()))(t)
			defer conn.Close()
			response := make([]byte, len(committed))
			modelstest.Value(io.WriteString(conn, update))(t)
			modelstest.Value(io.ReadFull(conn, response))(t)

			l.set(func() { test.fault(l) })
			// Fails if the connection was reset already.
			_, _ = io.WriteString(conn, commit)
			waits := errors.Is(test.response, os.ErrDeadlineExceeded)
			if waits {
				modelstest.Must(t, conn.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
			}
			_, err := io.ReadFull(conn, response)
			if (err == nil) != (test.response == nil) || errors.Is(err, os.ErrDeadlineExceeded) != waits {
				t.Errorf("the response to the COMMIT: %v, want %v", err, test.response)
			}
			if got := received.String(); got != test.before || l.takeTriggered() != test.trapped {
				t.Errorf("the server received %q", got)
			}
			_ = conn.Close()
			l.heal()
			<-ended
			if got := received.String(); got != test.healed {
				t.Errorf("after the heal the server received %q", got)
			}
		})
	}
}
