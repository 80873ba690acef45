package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// stopTimeout is how long running requests may take after a signal to stop. Together with
// closeTimeout it is below the 10 s that the documentation promises.
const stopTimeout = 7 * time.Second

// server is an HTTP server with an open listener.
type server struct {
	*http.Server

	name     string
	listener net.Listener
	logger   *slog.Logger
}

func newServer(name string, listener net.Listener, handler http.Handler, logger *slog.Logger) server {
	return server{
		Server: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       15 * time.Second,
			WriteTimeout:      30 * time.Second,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    16 << 10,
			ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		},
		name: name, listener: listener, logger: logger,
	}
}

// serveUntilDone serves until ctx ends or one of the servers fails, and then stops all of them. It
// returns nil if ctx ended and no server failed.
func serveUntilDone(ctx context.Context, servers []server) error {
	ended := make(chan error, len(servers))
	for _, s := range servers {
		s.logger.InfoContext(ctx, "listening", slog.String("server", s.name), slog.String("address", s.listener.Addr().String()))
		go func() { ended <- s.serve() }()
	}
	var failures []error
	waiting := len(servers)
	select {
	case err := <-ended:
		failures = append(failures, err)
		waiting--
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	for _, s := range servers {
		s.stop(stop)
	}
	for range waiting {
		failures = append(failures, <-ended)
	}
	return errors.Join(failures...)
}

func (s server) serve() error {
	if err := s.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.name, err)
	}
	return nil
}

// stop accepts no new requests and waits for the running ones until ctx ends. It then closes the
// remaining connections.
func (s server) stop(ctx context.Context) {
	s.logger.InfoContext(ctx, "stopping", slog.String("server", s.name))
	if err := s.Shutdown(ctx); err != nil {
		s.logger.WarnContext(ctx, "requests dropped", slog.String("server", s.name), slog.Any("cause", err))
		_ = s.Close()
	}
}
