package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestAnswerIsReadHoweverItArrives(t *testing.T) {
	const response = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\nDate: now\r\n\r\n{\"a\":\"bcd\"}"
	for name, reader := range map[string]io.Reader{
		"at once":   strings.NewReader(response),
		"in bytes":  iotest.OneByteReader(strings.NewReader(response)),
		"with EOF":  iotest.DataErrReader(strings.NewReader(response)),
		"in halves": iotest.HalfReader(strings.NewReader(response)),
	} {
		a, body, err := readAnswer(reader, make([]byte, 1024))
		if err != nil || a != (answer{status: 200, length: 11}) || string(body) != `{"a":"bcd"}` {
			t.Errorf("%s: %v %q %v", name, a, body, err)
		}
	}
}

func TestAnswerWithoutABodyIsRead(t *testing.T) {
	a, body, err := readAnswer(strings.NewReader("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"), make([]byte, 1024))
	if err != nil || a != (answer{status: 401}) || len(body) != 0 {
		t.Errorf("%v %q %v", a, body, err)
	}
}

func TestWhatIsNotOneAnswerIsRefused(t *testing.T) {
	for _, response := range []string{
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
		if a, _, err := readAnswer(strings.NewReader(response), make([]byte, 1024)); err == nil {
			t.Errorf("%.50q is taken for %v", response, a)
		}
	}
}

func TestReadErrorsAreKept(t *testing.T) {
	_, _, err := readAnswer(iotest.ErrReader(io.ErrClosedPipe), make([]byte, 1024))
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}
