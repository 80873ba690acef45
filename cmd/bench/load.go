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
	keys        []apiKey  // each connection uses them in turn, from a starting point of its own
	fixed       []byte    // every request; nil: requests for a token with the keys
	want        response  // to fixed
	connections int
	eachKey     bool     // the warm-up lasts until each key was used
	database    *cluster // whose CPU time is measured; nil: none
	// background runs during the load; nil: nothing runs.
	background func(context.Context) error

	accepted atomic.Int64 // responses in all runs, warm-ups included
}

// measurement is the result of one run of a load.
type measurement struct {
	elapsed     time.Duration
	latencies   histogram
	serverCPU   time.Duration // of all servers
	databaseCPU time.Duration
	statements  int64 // transactions that the database has committed
	written     int64 // bytes that the servers and the database have written to the disk
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

func (m *measurement) writtenPerSecond() float64 { return float64(m.written) / m.elapsed.Seconds() }

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
	patience := 10 * time.Second
	if l.eachKey {
		patience += time.Duration(len(l.keys)) * time.Millisecond
	}
	clients, closeAll, err := l.dial(ctx, time.Now().Add(warmUp+duration+patience))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.name, err)
	}
	defer closeAll()
	var now atomic.Int32
	latencies := make([]histogram, len(clients))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, c := range clients {
		group.Go(func() error {
			first := i * len(l.keys) / len(clients)
			want := l.want
			if l.fixed == nil {
				want = l.servers[i%len(l.servers)].want
			}
			return l.loop(c, first, want, &now, &latencies[i])
		})
	}
	backgroundCtx, endBackground := context.WithCancel(groupCtx)
	defer endBackground()
	if l.background != nil {
		group.Go(func() error { return l.background(backgroundCtx) })
	}

	used := l.accepted.Load() + int64(len(l.keys))
	sleep(groupCtx, warmUp)
	for l.eachKey && l.accepted.Load() < used && groupCtx.Err() == nil {
		sleep(groupCtx, 10*time.Millisecond)
	}
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
		written:     after.written - before.written,
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

// send sends the fixed request, or asks for a token with the next key.
func (l *load) send(c *client, next int) (response, []byte, error) {
	if l.fixed != nil {
		return c.send(l.fixed)
	}
	return c.requestToken(l.keys[next])
}

// loop sends requests, with each key in turn, until the phase is stopping. It records the latencies
// of the requests that end in the phase measuring.
func (l *load) loop(c *client, next int, want response, now *atomic.Int32, latencies *histogram) error {
	last := time.Now()
	for now.Load() != stopping {
		got, body, err := l.send(c, next)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("want status %d and %d bytes, got status %d and %d bytes: %s",
				want.status, want.length, got.status, got.length, body)
		}
		l.accepted.Add(1)
		end := time.Now()
		if now.Load() == measuring {
			latencies.record(end.Sub(last))
		}
		last = end
		if next++; next >= len(l.keys) {
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
	written           int64 // bytes, by the servers and the database
}

func (l *load) meter(ctx context.Context) (r reading, err error) {
	for _, s := range l.servers {
		cpu, written, err := s.usage()
		if err != nil {
			return r, err
		}
		r.servers += cpu
		r.written += written
	}
	if l.database != nil {
		var written int64
		if r.database, written, err = l.database.usage(); err != nil {
			return r, err
		}
		r.written += written
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
