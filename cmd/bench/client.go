package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"time"
)

// host is the host of every server's public URL.
const host = "portal.example"

// client is one keep-alive connection. Because it shares the processors with the server, it sends
// encoded requests, which takes half of the CPU time of http.Client.
type client struct {
	net.Conn

	reader *bufio.Reader
}

// dial connects to a server. Requests on the connection fail after the time limit.
func dial(ctx context.Context, address string, limit time.Duration) (*client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &client{conn, bufio.NewReader(conn)}, conn.SetDeadline(time.Now().Add(limit))
}

// send sends a request and returns the status and the body of the response.
func (c *client) send(request []byte) (status int, body []byte, err error) {
	if _, err := c.Write(request); err != nil {
		return 0, nil, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return 0, nil, err
	}
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, errors.Join(err, response.Body.Close())
}

// sendOK is send for a request that must succeed.
func (c *client) sendOK(request []byte) error {
	status, body, err := c.send(request)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", status, body)
	}
	return err
}

// ask sends a request on a connection of its own, as HTTP/1.0, and returns the part of the
// response, head and body, that the expression's group matches.
func ask(ctx context.Context, address string, request []byte, expression string) (string, error) {
	c, err := dial(ctx, address, stopTimeout)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	_, writeErr := c.Write(bytes.Replace(request, []byte("HTTP/1.1"), []byte("HTTP/1.0"), 1))
	response, readErr := io.ReadAll(c)
	found := regexp.MustCompile(expression).FindSubmatch(response)
	if found == nil {
		return "", errors.Join(writeErr, readErr, fmt.Errorf("no %s in %.500q", expression, response))
	}
	return string(found[1]), nil
}

func tokenRequest(k apiKey) []byte {
	return postRequest("/api/widget/token", "application/json", k.secret, `{"agentId":"`+k.agentID+`"}`)
}

func postRequest(path, contentType, credential, body string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		path, host, credential, contentType, len(body), body)
}

// getRequest returns a GET request with more headers, each with a line end before it.
func getRequest(path, headers string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s%s\r\n\r\n", path, host, headers)
}
