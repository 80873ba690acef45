package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// The phases of a stop. Together with closeTimeout, flushSpansTimeout and flushLogTimeout they are
// below the 10 s that the documentation promises.
const (
	// drainTimeout is how long the listeners stay open after /readyz has turned 503. By then a
	// proxy that checks /readyz once a second sends no new requests.
	drainTimeout = 2 * time.Second
	// stopTimeout is how long running requests may take after the drain.
	stopTimeout = 3500 * time.Millisecond
)

const (
	idleTimeout = 2 * time.Minute
	// proxiedIdleTimeout is longer than balancers keep idle connections, such as Google's for
	// 600 s and Cloudflare for 900 s. If the portal closed one first, a POST that is on its way
	// would fail. The bounds of the connections hold for idle ones too.
	proxiedIdleTimeout = 16 * time.Minute
)

// server is an HTTP server with an open listener.
type server struct {
	*http.Server

	name     string
	listener net.Listener
}

func newServer(name string, listener net.Listener, handler http.Handler, logger *slog.Logger) server {
	return server{
		Server: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       15 * time.Second,
			WriteTimeout:      30 * time.Second,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    16 << 10, // net/http adds 4 KiB
			ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		},
		name: name, listener: listener,
	}
}

// awaitProxies keeps idle connections for longer if there are proxies in front.
func (s server) awaitProxies(trusted []netip.Prefix) {
	if len(trusted) > 0 {
		s.IdleTimeout = proxiedIdleTimeout
	}
}

// serveUntilDone serves until ctx ends or one of the servers fails, and then stops all of them.
// After the end of ctx it continues to serve for the drain, then accepts no new requests, waits for
// the running ones, and closes the remaining connections. If no server failed, it returns nil.
//
// The first server starts last, so that all addresses are in the log once it answers.
func serveUntilDone(ctx context.Context, servers []server, logger *slog.Logger) error {
	ended := make(chan error, len(servers))
	for _, s := range slices.Backward(servers) {
		logger.InfoContext(ctx, "listening", slog.String("server", s.name), slog.String("address", s.listener.Addr().String()))
		go func() {
			err := s.Serve(s.listener)
			if errors.Is(err, http.ErrServerClosed) {
				ended <- nil
				return
			}
			ended <- fmt.Errorf("serve %s: %w", s.name, err)
		}()
	}
	drained := make(chan struct{})
	context.AfterFunc(ctx, func() {
		time.Sleep(drainTimeout)
		close(drained)
	})
	var failures []error
	select {
	case err := <-ended:
		failures = append(failures, err)
	case <-drained:
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	for _, s := range servers {
		logger.InfoContext(ctx, "stopping", slog.String("server", s.name))
		if err := s.Shutdown(stop); err != nil {
			logger.WarnContext(ctx, "requests dropped", slog.String("server", s.name), slog.Any("cause", err))
			_ = s.Close()
		}
	}
	for len(failures) < len(servers) {
		failures = append(failures, <-ended)
	}
	return errors.Join(failures...)
}

// closeConnections closes each connection after its response once stopping is closed, so that few
// connections are left when the listener closes. It also closes the connection of a request in
// chunks: if the request had a Content-Length too, net/http has removed it, and a proxy may have
// taken the end of the request for another one (RFC 9112, section 6.3).
func closeConnections(next http.Handler, stopping <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		select {
		case <-stopping:
			w.Header().Set("Connection", "close")
		default:
		}
		next.ServeHTTP(w, r)
	})
}

// listen listens on the address in the variable name.
func listen(ctx context.Context, name, addr string) (net.Listener, error) {
	var c net.ListenConfig
	listener, err := c.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %s", name, addr, listenProblem(err))
	}
	return listener, nil
}

// listenProblem says why a listener cannot be opened and what to do.
func listenProblem(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "address already in use; stop the other program or choose another address"
	case errors.Is(err, syscall.EACCES):
		return "permission denied; choose a port from 1024 with a proxy in front, or give the service AmbientCapabilities=CAP_NET_BIND_SERVICE"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have the address; write one that it has, or 0.0.0.0 for all"
	}
	return cause(err) + "; write an IP address that this machine has, such as 127.0.0.1, or 0.0.0.0 for all"
}
