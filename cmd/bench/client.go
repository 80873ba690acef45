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

// client is one keep-alive connection. It sends encoded requests and parses only the status and the
// length of a response, because it shares the processors with the server.
type client struct {
	conn    net.Conn
	buffer  []byte // for the response
	request []byte // the last one
}

// response is the part of a response that every request checks.
type response struct {
	status int
	length int // of the body, in bytes
}

// maxResponse is the size limit of a response, head and body together.
const maxResponse = 16 << 10

// dial connects to a server. Requests on the connection fail after the deadline.
func dial(ctx context.Context, address string, deadline time.Time) (*client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &client{conn: conn, buffer: make([]byte, maxResponse)}, nil
}

func (c *client) close() { _ = c.conn.Close() }

// send sends a request and reads the response. The body is valid until the next request.
func (c *client) send(request []byte) (response, []byte, error) {
	if _, err := c.conn.Write(request); err != nil {
		return response{}, nil, err
	}
	return readResponse(c.conn, c.buffer)
}

const (
	lineEnd      = "\r\n"
	headEnd      = lineEnd + lineEnd
	statusPrefix = "HTTP/1.1 "
	lengthHeader = lineEnd + "Content-Length: "
)

var errIncomplete = errors.New("incomplete response")

// readResponse reads one response with a Content-Length, in the form that net/http writes. The body
// is a part of the buffer.
func readResponse(from io.Reader, buffer []byte) (response, []byte, error) {
	var have int
	for {
		n, err := from.Read(buffer[have:])
		have += n
		r, start, parseErr := parseHead(buffer[:have])
		switch {
		case parseErr == nil && have == start+r.length:
			return r, buffer[start:have], nil
		case parseErr == nil && have > start+r.length:
			return response{}, nil, errors.New("more than one response to a request")
		case parseErr != nil && !errors.Is(parseErr, errIncomplete):
			return response{}, nil, parseErr
		case err != nil:
			return response{}, nil, fmt.Errorf("read a response: %w", err)
		case have == len(buffer):
			return response{}, nil, fmt.Errorf("the response is longer than %d bytes", len(buffer))
		}
	}
}

// parseHead returns the status, the length of the body and its start in b. It returns errIncomplete
// if the head does not end in b.
func parseHead(b []byte) (r response, start int, err error) {
	end := bytes.Index(b, []byte(headEnd))
	if end < 0 {
		return response{}, 0, errIncomplete
	}
	const statusEnd = len("HTTP/1.1 200")
	if len(b) < statusEnd || !bytes.HasPrefix(b, []byte(statusPrefix)) {
		return response{}, 0, fmt.Errorf("not an HTTP/1.1 response: %.20q", b)
	}
	if r.status, err = strconv.Atoi(string(b[len(statusPrefix):statusEnd])); err != nil {
		return response{}, 0, fmt.Errorf("status: %w", err)
	}
	// The head includes the end of its last line, so that Content-Length may be the last
	// header.
	head := b[:end+len(lineEnd)]
	at := bytes.Index(head, []byte(lengthHeader))
	if at < 0 {
		return response{}, 0, errors.New("the response has no Content-Length")
	}
	value, _, _ := bytes.Cut(head[at+len(lengthHeader):], []byte(lineEnd))
	if r.length, err = strconv.Atoi(string(value)); err != nil {
		return response{}, 0, fmt.Errorf("length: %w", err)
	}
	return r, end + len(headEnd), nil
}

// requestToken asks for a widget token with a key. The body is valid until the next request.
func (c *client) requestToken(key apiKey) (response, []byte, error) {
	const before, after = `{"agentId":"`, `"}`
	r := c.request[:0]
	r = append(r, "POST /api/widget/token HTTP/1.1\r\nHost: "+host+"\r\nUser-Agent: bench\r\nAccept: application/json\r\n"+
		"Authorization: Bearer "...)
	r = append(r, key.secret...)
	r = append(r, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	r = strconv.AppendInt(r, int64(len(before)+len(key.agentID)+len(after)), 10)
	r = append(r, headEnd+before...)
	r = append(r, key.agentID...)
	r = append(r, after...)
	c.request = r
	return c.send(r)
}

// host is the host of every server's public URL. It is the issuer of tokens, so tokens have the
// same length on every port.
const host = "portal.example"
