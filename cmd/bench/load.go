package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// load is a set of clients. Each sends its next request as soon as it has the response to the last
// one.
type load struct {
	name        string
	servers     []*server // connections are spread over them
	requests    [][]byte  // each connection sends them in turn, from its own starting point
	connections int
	database    *cluster // whose CPU time is measured; nil: none
	// background runs as long as the load does; nil: nothing.
	background func(context.Context) error
}

// measurement is the result of one run of a load.
type measurement struct {
	elapsed     time.Duration
	latencies   histogram
	serverCPU   time.Duration // of all servers
	databaseCPU time.Duration
	statements  int64 // transactions that the database has committed
	others      int   // requests by other clients in the same time
}

func (m *measurement) rate() float64 { return float64(m.latencies.total) / m.elapsed.Seconds() }

func (m *measurement) p50() float64 { return float64(m.latencies.percentile(0.50)) }

func (m *measurement) p99() float64 { return float64(m.latencies.percentile(0.99)) }

func (m *measurement) serverCPUPerRequest() float64 {
	return float64(m.serverCPU) / float64(m.latencies.total+m.others)
}

func (m *measurement) databaseCPUPerRequest() float64 {
	return float64(m.databaseCPU) / float64(m.latencies.total+m.others)
}

func (m *measurement) statementsPerSecond() float64 {
	return float64(m.statements) / m.elapsed.Seconds()
}

// phase is the phase of a load.
type phase = int32

const (
	warming phase = iota
	measuring
	stopping
)

// run applies the load and measures it after the warm-up. It fails at the first response that is
// not the expected one.
func (l *load) run(ctx context.Context, warmUp, duration time.Duration) (*measurement, error) {
	clients, closeAll, err := l.dial(ctx, time.Now().Add(warmUp+duration+10*time.Second))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.name, err)
	}
	defer closeAll()
	var now atomic.Int32
	latencies := make([]histogram, len(clients))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, c := range clients {
		group.Go(func() error {
			first := i * len(l.requests) / len(clients)
			return c.loop(l.requests, first, l.servers[i%len(l.servers)].want, &now, &latencies[i])
		})
	}
	backgroundCtx, endBackground := context.WithCancel(groupCtx)
	defer endBackground()
	if l.background != nil {
		group.Go(func() error { return l.background(backgroundCtx) })
	}

	sleep(groupCtx, warmUp)
	before, beforeErr := l.meter(groupCtx)
	now.Store(measuring)
	sleep(groupCtx, duration)
	now.Store(stopping)
	after, afterErr := l.meter(groupCtx)
	endBackground()
	for _, err := range []error{group.Wait(), ctx.Err(), beforeErr, afterErr} {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
	}
	m := &measurement{
		elapsed:     after.at.Sub(before.at),
		serverCPU:   after.servers - before.servers,
		databaseCPU: after.database - before.database,
		statements:  after.statements - before.statements,
	}
	for i := range latencies {
		m.latencies.add(&latencies[i])
	}
	return m, nil
}

func (l *load) dial(ctx context.Context, deadline time.Time) (clients []*client, closeAll func(), err error) {
	closeAll = func() {
		for _, c := range clients {
			c.close()
		}
	}
	for i := range l.connections {
		c, err := dial(ctx, l.servers[i%len(l.servers)].address, deadline)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		clients = append(clients, c)
	}
	return clients, closeAll, nil
}

// loop sends the requests in turn until the phase is stopping. It records the latencies of those
// that end in the phase measuring.
func (c *client) loop(requests [][]byte, next int, want response, now *atomic.Int32, latencies *histogram) error {
	last := time.Now()
	for now.Load() != stopping {
		got, body, err := c.send(requests[next])
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("want status %d and %d bytes, got status %d and %d bytes: %s",
				want.status, want.length, got.status, got.length, body)
		}
		end := time.Now()
		if now.Load() == measuring {
			latencies.record(end.Sub(last))
		}
		last = end
		if next++; next == len(requests) {
			next = 0
		}
	}
	return nil
}

// reading holds the counters at one moment.
type reading struct {
	at                time.Time
	servers, database time.Duration // CPU time since the start of the processes
	statements        int64
}

func (l *load) meter(ctx context.Context) (r reading, err error) {
	for _, s := range l.servers {
		cpu, err := s.cpu()
		if err != nil {
			return r, err
		}
		r.servers += cpu
	}
	if l.database != nil {
		if r.database, err = l.database.cpu(); err != nil {
			return r, err
		}
		if r.statements, err = l.database.transactions(ctx); err != nil {
			return r, err
		}
	}
	r.at = time.Now()
	return r, nil
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// accepted is the response to a valid request, with a body of this length.
func accepted(length int) response { return response{status: http.StatusOK, length: length} }
