package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadResponseAcceptsAnyFragmentation(t *testing.T) {
	const text = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\nDate: now\r\n\r\n{\"a\":\"bcd\"}"
	for name, reader := range map[string]io.Reader{
		"at once":   strings.NewReader(text),
		"in bytes":  iotest.OneByteReader(strings.NewReader(text)),
		"with EOF":  iotest.DataErrReader(strings.NewReader(text)),
		"in halves": iotest.HalfReader(strings.NewReader(text)),
	} {
		r, body, err := readResponse(reader, make([]byte, 1024))
		if err != nil || r != (response{status: 200, length: 11}) || string(body) != `{"a":"bcd"}` {
			t.Errorf("%s: %v %q %v", name, r, body, err)
		}
	}
}

func TestReadResponseAcceptsAnEmptyBody(t *testing.T) {
	r, body, err := readResponse(strings.NewReader("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"), make([]byte, 1024))
	if err != nil || r != (response{status: 401}) || len(body) != 0 {
		t.Errorf("%v %q %v", r, body, err)
	}
}

func TestReadResponseRefusesEverythingElse(t *testing.T) {
	for _, text := range []string{
		"",
		"HTTP/1.1 200 OK\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcdef",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
		"SSH-2.0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + strings.Repeat("a", 5000),
	} {
		if r, _, err := readResponse(strings.NewReader(text), make([]byte, 1024)); err == nil {
			t.Errorf("%.50q is read as %v", text, r)
		}
	}
}

func TestReadResponseReturnsTheReadersError(t *testing.T) {
	_, _, err := readResponse(iotest.ErrReader(io.ErrClosedPipe), make([]byte, 1024))
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}
