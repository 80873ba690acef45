package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// unknownRate is how many requests with unknown keys are sent a second.
	unknownRate = 5_000
	// unknownConnections are enough for that while the server is busy.
	unknownConnections = 128
)

// unknownKeys measures what requests with well-formed keys that do not exist,
// none of which memory can answer, do to those with a good one.
func unknownKeys(ctx context.Context, b *bench) (err error) {
	f, err := b.newFixture(ctx, "unknown", 1, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	alone := f.load("no unknown keys", f.tenant.requests(1))
	beset := f.load(thousands(unknownRate)+" unknown keys a second", alone.requests)
	var refusedRates []float64
	beset.beside = func(ctx context.Context) error {
		rate, err := f.sendUnknownKeys(ctx)
		refusedRates = append(refusedRates, rate)
		return err
	}
	loads := []*load{alone, beset}
	results, err := b.interleave(ctx, loads...)
	if err != nil {
		return err
	}

	refused := median(refusedRates)
	t := table{
		title: "Unknown keys",
		about: fmt.Sprintf("PostgreSQL, one good key at %d connections; another client sends well-formed keys, each of them new, "+
			"on %d connections of its own. Latencies are those of the good key.", busy, unknownConnections),
		header: []string{"", "requests/s", "of alone", "p50", "p99", "refused/s", "CPU server, of all", "CPU database, of all"},
	}
	for i, l := range loads {
		r, refusedHere := results[i], float64(i)*refused
		all := func(cpu func(*measurement) float64) string {
			return microseconds(r.median(func(m *measurement) float64 { return cpu(m) * m.rate() / (m.rate() + refusedHere) }))
		}
		t.add(l.name, perSecond(r.median((*measurement).rate)), ratio(r.ratio(results[0], (*measurement).rate)),
			milliseconds(r.median((*measurement).p50)), milliseconds(r.median((*measurement).p99)), perSecond(refusedHere),
			all((*measurement).serverCPUPerRequest), all((*measurement).databaseCPUPerRequest))
	}
	b.print(t)
	b.atMost(perSecond(refused)+" unknown keys a second: p99 of the good key, of that without",
		results[1].ratio(results[0], (*measurement).p99), 2)
	b.atLeast("Unknown keys refused a second, of "+thousands(unknownRate), refused/unknownRate, 0.95)
	return nil
}

// sendUnknownKeys sends them at the rate, however long the answers take, until
// ctx ends, and returns the rate at which they were answered.
func (f *fixture) sendUnknownKeys(ctx context.Context) (perSecond float64, err error) {
	began := time.Now()
	var refused atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	const interval = time.Second * unknownConnections / unknownRate
	for i := range unknownConnections {
		group.Go(func() error {
			c, err := dial(context.WithoutCancel(ctx), f.server.address, time.Now().Add(time.Hour))
			if err != nil {
				return err
			}
			defer c.close()
			next := began.Add(interval * time.Duration(i) / unknownConnections)
			for ; ctx.Err() == nil; next = next.Add(interval) {
				sleep(ctx, time.Until(next))
				got, body, err := c.ask(tokenRequest(newKey(), f.tenant.agentID.String()))
				if err == nil && got.status != http.StatusUnauthorized {
					err = fmt.Errorf("an unknown key got status %d: %s", got.status, body)
				}
				if err != nil {
					return err
				}
				refused.Add(1)
			}
			return nil
		})
	}
	err = group.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return float64(refused.Load()) / time.Since(began).Seconds(), err
}
