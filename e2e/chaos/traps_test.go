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

// throughLink connects through a link to a server that answers every chunk like a COMMIT. It
// returns the client's end, and what the server receives.
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

// ask sends a message and returns the answer.
func ask(t *testing.T, conn net.Conn, message string) ([]byte, error) {
	t.Helper()
	if _, err := conn.Write([]byte(message)); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	answer := make([]byte, 1024)
	n, err := conn.Read(answer)
	return answer[:n], err
}

func TestLinkForwards(t *testing.T) {
	_, conn, _ := throughLink(t)
	if answer, err := ask(t, conn, commit); err != nil || !bytes.Equal(answer, []byte(committed)) {
		t.Errorf("%q, %v", answer, err)
	}
}

func TestLinkLosesTheAnswerToACommitThatTheServerHas(t *testing.T) {
	l, conn, received := throughLink(t)
	l.set(func() { l.loseAnswers = 1 })
	if answer, err := ask(t, conn, commit); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%q, %v", answer, err)
	}
	if got := <-received; string(got) != commit {
		t.Errorf("the server received %q", got)
	}
	if n := l.trips(); n != 1 {
		t.Errorf("%d traps were sprung", n)
	}
}

func TestLinkStallsARevocationBeforeItsCommit(t *testing.T) {
	l, conn, received := throughLink(t)
	l.set(func() { l.stallCommits = 1 })
	if answer, err := ask(t, conn, update); err != nil {
		t.Errorf("%q, %v", answer, err)
	}
	if answer, err := ask(t, conn, commit); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v", answer, err)
	}
	if got := <-received; string(got) != update || len(received) > 0 {
		t.Errorf("the server received %q and %d more", got, len(received))
	}
	l.heal()
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the fault: %v", err)
	}
}

func TestSilentLinkDeliversLater(t *testing.T) {
	l, conn, received := throughLink(t)
	l.set(func() { l.mode = silent })
	if answer, err := ask(t, conn, commit); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v", answer, err)
	}
	if len(received) > 0 {
		t.Error("the server received the message")
	}
	// The client has given up; what it sent arrives all the same.
	_ = conn.Close()
	l.heal()
	select {
	case got := <-received:
		if string(got) != commit {
			t.Errorf("the server received %q", got)
		}
	case <-time.After(time.Second):
		t.Error("the server received nothing")
	}
}

func TestCutLinkResetsConnections(t *testing.T) {
	l, conn, _ := throughLink(t)
	if _, err := ask(t, conn, commit); err != nil {
		t.Fatal(err)
	}
	l.set(func() { l.mode = cut })
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v", err)
	}
}
