package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// client is one keep-alive connection. It sends bytes that were made before and
// looks at no more of an answer than it must: it shares the processors with the
// server that it measures.
type client struct {
	conn   net.Conn
	buffer []byte
}

// answer is what is looked at of a response.
type answer struct {
	status int
	length int // of the body, in bytes
}

// maxAnswer is far above what the endpoint answers, head and body together.
const maxAnswer = 16 << 10

// dial connects. Every request on the connection fails after the deadline.
func dial(ctx context.Context, address string, deadline time.Time) (*client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &client{conn: conn, buffer: make([]byte, maxAnswer)}, nil
}

func (c *client) close() { _ = c.conn.Close() }

// ask sends a request and reads the whole answer, whose body is returned as
// well; the body is good until the next request.
func (c *client) ask(request []byte) (answer, []byte, error) {
	if _, err := c.conn.Write(request); err != nil {
		return answer{}, nil, err
	}
	return readAnswer(c.conn, c.buffer)
}

const (
	lineEnd      = "\r\n"
	headEnd      = lineEnd + lineEnd
	statusPrefix = "HTTP/1.1 "
	lengthHeader = lineEnd + "Content-Length: "
)

var errIncomplete = errors.New("the answer is not complete")

// readAnswer reads one response that has a Content-Length, as net/http writes
// it. The body is a part of the buffer.
func readAnswer(from io.Reader, buffer []byte) (answer, []byte, error) {
	var have int
	for {
		n, err := from.Read(buffer[have:])
		have += n
		a, start, parseErr := parseHead(buffer[:have])
		switch {
		case parseErr == nil && have == start+a.length:
			return a, buffer[start:have], nil
		case parseErr == nil && have > start+a.length:
			return answer{}, nil, errors.New("more than one answer to one request")
		case parseErr != nil && !errors.Is(parseErr, errIncomplete):
			return answer{}, nil, parseErr
		case err != nil:
			return answer{}, nil, fmt.Errorf("read an answer: %w", err)
		case have == len(buffer):
			return answer{}, nil, fmt.Errorf("the answer is longer than %d bytes", len(buffer))
		}
	}
}

// parseHead returns the status and the length of the body, and where that
// starts; or errIncomplete if more has to be read.
func parseHead(b []byte) (a answer, start int, err error) {
	end := bytes.Index(b, []byte(headEnd))
	if end < 0 {
		return answer{}, 0, errIncomplete
	}
	const statusEnd = len("HTTP/1.1 200")
	if len(b) < statusEnd || !bytes.HasPrefix(b, []byte(statusPrefix)) {
		return answer{}, 0, fmt.Errorf("not an HTTP/1.1 answer: %.20q", b)
	}
	if a.status, err = strconv.Atoi(string(b[len(statusPrefix):statusEnd])); err != nil {
		return answer{}, 0, fmt.Errorf("status: %w", err)
	}
	// The head with its last line's end, so that the header may come last.
	head := b[:end+len(lineEnd)]
	at := bytes.Index(head, []byte(lengthHeader))
	if at < 0 {
		return answer{}, 0, errors.New("the answer has no Content-Length")
	}
	value, _, _ := bytes.Cut(head[at+len(lengthHeader):], []byte(lineEnd))
	if a.length, err = strconv.Atoi(string(value)); err != nil {
		return answer{}, 0, fmt.Errorf("length: %w", err)
	}
	return a, end + len(headEnd), nil
}

// tokenRequest is a request for a widget token.
func tokenRequest(key, agentID string) []byte {
	body := `{"agentId":"` + agentID + `"}`
	return fmt.Appendf(nil, "POST /api/widget/token HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nAccept: application/json\r\n"+
		"Authorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", host, key, len(body), body)
}

// host is what the servers are called, whatever port they listen on: tokens
// name it, and are of the same length everywhere.
const host = "portal.example"
