package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// load is a number of clients that ask without a pause: each sends its next
// request when it has the answer to the last.
type load struct {
	name        string
	servers     []*server // connections are dealt to them in turn
	requests    [][]byte  // which each connection sends in turn, from a place of its own
	connections int
	database    *cluster // whose CPU counts; nil: none
	// beside runs for as long as the load does; nil: nothing.
	beside func(context.Context) error
}

// measurement is what one stretch of a load came to.
type measurement struct {
	elapsed     time.Duration
	latencies   histogram
	serverCPU   time.Duration // of all servers
	databaseCPU time.Duration
	statements  int64 // transactions that the database has committed
}

func (m *measurement) rate() float64 { return float64(m.latencies.total) / m.elapsed.Seconds() }

func (m *measurement) p50() float64 { return float64(m.latencies.percentile(0.50)) }

func (m *measurement) p99() float64 { return float64(m.latencies.percentile(0.99)) }

func (m *measurement) serverCPUPerRequest() float64 {
	return float64(m.serverCPU) / float64(m.latencies.total)
}

func (m *measurement) databaseCPUPerRequest() float64 {
	return float64(m.databaseCPU) / float64(m.latencies.total)
}

func (m *measurement) statementsPerSecond() float64 {
	return float64(m.statements) / m.elapsed.Seconds()
}

// phase is what the clients of a load are to do.
type phase = int32

const (
	warming phase = iota
	measuring
	stopping
)

// run applies the load, and measures all of it but the warm-up. Any answer but
// the expected one ends it with an error.
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
	besideCtx, endBeside := context.WithCancel(groupCtx)
	defer endBeside()
	if l.beside != nil {
		group.Go(func() error { return l.beside(besideCtx) })
	}

	sleep(groupCtx, warmUp)
	before, beforeErr := l.meter(groupCtx)
	now.Store(measuring)
	sleep(groupCtx, duration)
	now.Store(stopping)
	after, afterErr := l.meter(groupCtx)
	endBeside()
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

// loop sends the requests in turn until it is time to stop, and records the
// latencies of those that end while it is measured.
func (c *client) loop(requests [][]byte, next int, want answer, now *atomic.Int32, latencies *histogram) error {
	last := time.Now()
	for now.Load() != stopping {
		got, body, err := c.ask(requests[next])
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("status %d with %d bytes, not %d with %d: %s", got.status, got.length, want.status, want.length, body)
		}
		answered := time.Now()
		if now.Load() == measuring {
			latencies.record(answered.Sub(last))
		}
		last = answered
		if next++; next == len(requests) {
			next = 0
		}
	}
	return nil
}

// reading is what the meters show at one moment.
type reading struct {
	at                time.Time
	servers, database time.Duration // CPU time since the processes began
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

// accepted is the answer to a good request, whose body has this length.
func accepted(length int) answer { return answer{status: http.StatusOK, length: length} }
