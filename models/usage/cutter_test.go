package usage_test

import (
	"bytes"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"portal/models/modelstest"
)

// cutter is a TCP proxy to PostgreSQL. When armed, it closes a connection that runs the write of a
// piece as soon as the server has answered, and does not pass the answer on.
type cutter struct {
	url    string
	pieces atomic.Int64 // pieces to pass before the cut; negative: no cut
	cuts   atomic.Int64
}

func newCutter(t *testing.T, databaseURL string) *cutter {
	t.Helper()
	target, err := url.Parse(databaseURL)
	modelstest.Must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	modelstest.Must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	server := target.Host
	target.Host = listener.Addr().String()
	c := &cutter{url: target.String()}
	c.pieces.Store(-1)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go c.serve(client, server)
		}
	}()
	return c
}

// arm makes the cutter cut after some more pieces.
func (c *cutter) arm(pieces int) { c.pieces.Store(int64(pieces)) }

func (c *cutter) serve(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	var cut atomic.Bool
	go func() {
		defer server.Close()
		buffer := make([]byte, 1<<20)
		for {
			n, err := client.Read(buffer)
			if err != nil {
				return
			}
			// A Bind message names the prepared statement (PostgreSQL manual, section
			// 55.7).
			if bytes.Contains(buffer[:n], []byte("\x00add\x00")) && c.pieces.Add(-1) == -1 {
				cut.Store(true)
			}
			if _, err := server.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 1<<16)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		if cut.Load() {
			c.cuts.Add(1)
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
