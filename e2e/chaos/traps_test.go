package chaos

import (
	"bytes"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

const (
	update    = "Q\x00\x00\x00\x40UPDATE \"api_keys\" SET \"revoked_at\" = 'now' WHERE id = 'x'\x00"
	commit    = "Q\x00\x00\x00\x0bcommit\x00"
	committed = "C\x00\x00\x00\x0bCOMMIT\x00Z\x00\x00\x00\x05I"
)

// throughLink connects through a link to a server that responds to every chunk as to a COMMIT. It
// returns the client's connection and the chunks that the server receives.
func throughLink(t *testing.T) (*link, net.Conn, <-chan []byte) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	received := make(chan []byte, 10)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for {
			chunk := make([]byte, 1024)
			n, err := conn.Read(chunk)
			if err != nil {
				return
			}
			received <- chunk[:n]
			_, _ = conn.Write([]byte(committed))
		}
	}()
	l, err := newLink(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	conn, err := net.Dial("tcp", l.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return l, conn, received
}

// ask sends a message and returns the response, for which it waits a minute.
func ask(t *testing.T, conn net.Conn, message string) ([]byte, error) {
	t.Helper()
	return askFor(t, conn, message, time.Minute)
}

// askFor is [ask] with the time to wait.
func askFor(t *testing.T, conn net.Conn, message string, wait time.Duration) ([]byte, error) {
	t.Helper()
	if _, err := conn.Write([]byte(message)); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(wait))
	response := make([]byte, 1024)
	n, err := conn.Read(response)
	return response[:n], err
}

func TestLinkForwards(t *testing.T) {
	_, conn, _ := throughLink(t)
	if response, err := ask(t, conn, commit); err != nil || !bytes.Equal(response, []byte(committed)) {
		t.Errorf("%q, %v", response, err)
	}
}

func TestLinkLosesTheResponseToACommit(t *testing.T) {
	l, conn, received := throughLink(t)
	l.set(func() { l.loseResponses = 1 })
	if response, err := ask(t, conn, commit); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%q, %v", response, err)
	}
	if got := <-received; string(got) != commit {
		t.Errorf("the server received %q", got)
	}
	if n := l.takeTriggered(); n != 1 {
		t.Errorf("%d traps were triggered", n)
	}
}

func TestLinkStallsARevocationBeforeItsCommit(t *testing.T) {
	l, conn, received := throughLink(t)
	l.set(func() { l.stallCommits = 1 })
	if response, err := ask(t, conn, update); err != nil {
		t.Errorf("%q, %v", response, err)
	}
	if response, err := askFor(t, conn, commit, 300*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v", response, err)
	}
	if got := <-received; string(got) != update || len(received) > 0 {
		t.Errorf("the server received %q and %d more", got, len(received))
	}
	l.heal()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the heal: %v", err)
	}
}

func TestSilentLinkDeliversAfterTheHeal(t *testing.T) {
	l, conn, received := throughLink(t)
	l.set(func() { l.mode = silent })
	if response, err := askFor(t, conn, commit, 300*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v", response, err)
	}
	if len(received) > 0 {
		t.Error("the server received the message early")
	}
	// The message must arrive although the client has closed its connection.
	_ = conn.Close()
	l.heal()
	select {
	case got := <-received:
		if string(got) != commit {
			t.Errorf("the server received %q", got)
		}
	case <-time.After(time.Minute):
		t.Error("the server received nothing")
	}
}

func TestCutLinkResetsConnections(t *testing.T) {
	l, conn, _ := throughLink(t)
	if _, err := ask(t, conn, commit); err != nil {
		t.Fatal(err)
	}
	l.set(func() { l.mode = cut })
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v", err)
	}
}
