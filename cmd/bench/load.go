package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
)

// busy is the number of connections of a full load.
const busy = 64

// load is a set of clients. Each sends its next request as soon as it has the response to the last
// one, unless the load has a rate.
type load struct {
	name        string
	servers     []*server // connections are spread over them
	cluster     *cluster  // whose CPU time is measured; nil: none
	keys        []apiKey  // each connection uses them in turn, from a starting point of its own
	fixed       []byte    // every request; nil: requests for a token with the keys
	connections int
	// Requests a second of all connections; 0: as many as possible.
	rate       int
	eachKey    bool                        // the first warm-up lasts until each key was used
	background func(context.Context) error // runs at the same time; nil: nothing
	others     *atomic.Int64               // requests of the background in all runs; nil: none
	accepted   atomic.Int64                // responses in all runs, warm-ups included
}

// beside makes another load run at the same time.
func (l *load) beside(other *load) {
	l.background = func(ctx context.Context) error {
		_, err := other.apply(ctx, time.Hour, 0)
		return err
	}
	l.others = &other.accepted
}

// The figures of a measurement. Times are in nanoseconds.
const (
	perSecond    = iota // requests
	p50                 // latency
	p99                 // latency
	serverCPU           // of all servers, for a request
	databaseCPU         // for a request
	databaseLoad        // CPU time of the database in a second
	statements          // transactions that the database commits in a second
	figures
)

// rounds are the measurements of one load, one a round.
type rounds [][figures]float64

func (r rounds) median(figure int) float64 {
	var values []float64
	for _, m := range r {
		values = append(values, m[figure])
	}
	return median(values)
}

// mean returns the mean of a figure. The clock of a process ticks every 10 ms, which is too coarse
// for the database's CPU time in one round.
func (r rounds) mean(figure int) (mean float64) {
	for _, m := range r {
		mean += m[figure] / float64(len(r))
	}
	return mean
}

// ratio returns the median of the ratios to another load in the same rounds. A disturbance that
// slows the machine down in a round slows both loads.
func (r rounds) ratio(other rounds, figure int) float64 {
	var values []float64
	for i := range r {
		values = append(values, r[i][figure]/other[i][figure])
	}
	return median(values)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// interleave measures each load once a round, and reverses the order after each round, so that a
// drift in the machine's speed affects all loads alike.
func (b *bench) interleave(ctx context.Context, loads ...*load) ([]rounds, error) {
	results := make([]rounds, len(loads))
	for round := range b.rounds {
		for i := range loads {
			if round%2 == 1 {
				i = len(loads) - 1 - i
			}
			l := loads[i]
			m, err := l.run(ctx, min(b.duration/4, time.Second), b.duration)
			if err != nil {
				return nil, err
			}
			results[i] = append(results[i], m)
			progress("round %d of %d: %s, %d connections: %.0f requests/s, p50 %s, p99 %s", round+1, b.rounds,
				l.name, l.connections, m[perSecond], milliseconds(m[p50]), milliseconds(m[p99]))
		}
	}
	return results, nil
}

// run applies the load and measures it after the warm-up, and fails at the first request that does
// not succeed.
func (l *load) run(ctx context.Context, warmUp, duration time.Duration) (m [figures]float64, err error) {
	underLoad, end := context.WithCancel(ctx)
	defer end()
	group, underLoad := errgroup.WithContext(underLoad)
	if l.background != nil {
		group.Go(func() error { return l.background(underLoad) })
	}
	m, err = l.measure(underLoad, warmUp, duration)
	end()
	if err := errors.Join(err, group.Wait(), ctx.Err()); err != nil {
		return m, fmt.Errorf("%s: %w", l.name, err)
	}
	for _, s := range l.servers { // the access logs would fill the disk
		err = errors.Join(err, s.log.Truncate(0))
	}
	return m, err
}

func (l *load) measure(ctx context.Context, warmUp, duration time.Duration) (m [figures]float64, err error) {
	var atLeast int64
	if l.eachKey {
		atLeast = int64(len(l.keys))
	}
	if _, err := l.apply(ctx, warmUp, atLeast); err != nil {
		return m, err
	}
	before, beforeErr := l.meter(ctx)
	latencies, applyErr := l.apply(ctx, duration, 0)
	after, afterErr := l.meter(ctx)
	seconds, requests := after.at.Sub(before.at).Seconds(), float64(after.requests-before.requests)
	m[perSecond] = float64(len(latencies)) / seconds
	if n := len(latencies); n > 0 {
		m[p50], m[p99] = float64(latencies[(n-1)/2]), float64(latencies[(n-1)*99/100])
	}
	m[serverCPU] = float64(after.servers-before.servers) / requests
	m[databaseCPU] = float64(after.database-before.database) / requests
	m[databaseLoad] = float64(after.database-before.database) / seconds
	m[statements] = (after.statements - before.statements) / seconds
	return m, errors.Join(beforeErr, applyErr, afterErr)
}

// reading holds counters since the start of the processes.
type reading struct {
	at                time.Time
	requests          int64
	servers, database time.Duration // CPU time
	statements        float64
}

func (l *load) meter(ctx context.Context) (r reading, err error) {
	if r.requests = l.accepted.Load(); l.others != nil {
		r.requests += l.others.Load()
	}
	for _, s := range l.servers {
		r.servers += cpuOf(s.child.Process.Pid)
	}
	if l.cluster != nil {
		r.database = cpuOf(l.cluster.postmaster)
		// A statement outside a transaction counts as one.
		err = l.cluster.QueryRowContext(ctx, "SELECT sum(xact_commit) FROM pg_stat_database").Scan(&r.statements)
	}
	r.at = time.Now()
	return r, err
}

// apply sends requests for the duration, and until the load has this many responses in all. It
// returns the sorted latencies. If ctx ends it returns early and without an error.
func (l *load) apply(ctx context.Context, duration time.Duration, atLeast int64) ([]time.Duration, error) {
	group, groupCtx := errgroup.WithContext(ctx)
	latencies := make([][]time.Duration, l.connections)
	end := time.Now().Add(duration)
	for i := range l.connections {
		group.Go(func() error {
			c, err := dial(groupCtx, l.servers[i%len(l.servers)].address, duration+time.Hour)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			latencies[i], err = l.loop(groupCtx, c, i, func(now time.Time) bool { return now.After(end) && l.accepted.Load() >= atLeast })
			return err
		})
	}
	if l.connections == 0 {
		sleep(ctx, duration)
	}
	err := group.Wait()
	return slices.Sorted(slices.Values(slices.Concat(latencies...))), err
}

// loop sends the requests of a connection until it is done, and returns their latencies. If the
// load has a rate, a latency includes the delay with which the request was sent.
func (l *load) loop(ctx context.Context, c *client, connection int, done func(time.Time) bool) (latencies []time.Duration, err error) {
	next := connection * len(l.keys) / l.connections
	due := time.Now()
	var interval time.Duration
	if l.rate > 0 {
		interval = time.Second * time.Duration(l.connections) / time.Duration(l.rate)
		due = due.Add(interval * time.Duration(connection) / time.Duration(l.connections))
	}
	for ; !done(due) && ctx.Err() == nil; next++ {
		sleep(ctx, time.Until(due))
		request := l.fixed
		if request == nil {
			request = tokenRequest(l.keys[next%len(l.keys)])
		}
		if err := c.sendOK(request); err != nil {
			return nil, err
		}
		l.accepted.Add(1)
		now := time.Now()
		latencies = append(latencies, now.Sub(due))
		if due = due.Add(interval); l.rate == 0 {
			due = now
		}
	}
	return latencies, nil
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// cpuOf returns the CPU time of a process and its children, in user and kernel mode, including the
// children that have exited.
func cpuOf(pid int) time.Duration {
	processes, _ := procfs.AllProcs()
	ticks := 0
	for _, process := range processes {
		stat, _ := process.Stat() // zero if the process has exited
		if stat.PID == pid {
			ticks += stat.CUTime + stat.CSTime
		}
		if stat.PID == pid || stat.PPID == pid {
			ticks += int(stat.UTime + stat.STime)
		}
	}
	// USER_HZ is the same on every architecture that Go supports.
	return time.Duration(ticks) * time.Second / 100
}
