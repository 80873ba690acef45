package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
)

// listeners are the open listeners of serve.
type listeners struct {
	site    net.Listener
	metrics net.Listener // nil: no metrics
}

func listen(ctx context.Context, s settings) (l listeners, err error) {
	if l.site, err = listenOn(ctx, "PORTAL_ADDR", s.addr); err != nil {
		return listeners{}, err
	}
	if s.metricsAddr == "" {
		return l, nil
	}
	if l.metrics, err = listenOn(ctx, "PORTAL_METRICS_ADDR", s.metricsAddr); err != nil {
		l.close()
		return listeners{}, err
	}
	return l, nil
}

// close closes the listeners that no server has closed.
func (l listeners) close() {
	_ = l.site.Close()
	if l.metrics != nil {
		_ = l.metrics.Close()
	}
}

func listenOn(ctx context.Context, name, addr string) (net.Listener, error) {
	var c net.ListenConfig
	listener, err := c.Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: %s: address already in use; stop the other program or choose another address", name, addr)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return listener, nil
}

// publicURL returns the configured public URL, or else http:// and the listen address. It replaces
// port 0 with the port that the system chose. A demo on a loopback address has the name localhost,
// because browsers support passkeys there.
func (s settings) publicURL(listening net.Addr) *url.URL {
	if s.baseURL != nil {
		return s.baseURL
	}
	host, _, _ := net.SplitHostPort(s.addr) // the method settings has checked it
	if host == "" || s.demo && (host == "127.0.0.1" || host == "::1") {
		host = "localhost"
	}
	_, port, _ := net.SplitHostPort(listening.String())
	return &url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}
}
