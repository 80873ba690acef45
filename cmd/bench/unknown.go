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
	// unknownRate is the number of requests with unknown keys per second.
	unknownRate = 5_000
	// unknownConnections is enough for that rate on a busy server.
	unknownConnections = 128
)

// unknownKeys measures how requests with well-formed but unknown keys, which no cache can answer,
// slow down requests with a valid key.
func unknownKeys(ctx context.Context, b *bench) (err error) {
	f, err := b.newFixture(ctx, "unknown", 1, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	alone := f.load("no unknown keys", f.tenant.keys[:1])
	attacked := f.load(thousands(unknownRate)+" unknown keys a second", alone.keys)
	var refusedRates []float64
	attacked.background = func(ctx context.Context) error {
		rate, err := f.sendUnknownKeys(ctx)
		refusedRates = append(refusedRates, rate)
		return err
	}
	loads := []*load{alone, attacked}
	results, err := b.interleave(ctx, loads...)
	if err != nil {
		return err
	}

	refused := median(refusedRates)
	t := table{
		title: "Unknown keys",
		about: fmt.Sprintf("PostgreSQL, one valid key at %d connections. Another client sends a new, unknown key with each request, "+
			"on %d other connections. Latencies are those of the valid key. CPU is per request of either client.", busy, unknownConnections),
		header: []string{"", "requests/s", "vs. none", "p50", "p99", "refused/s", "CPU server", "CPU database"},
	}
	for i, l := range loads {
		refusedHere := float64(i) * refused
		for _, m := range results[i] {
			m.others = int(refusedHere * m.elapsed.Seconds())
		}
		t.addLoad([]string{l.name}, results[i], results[0], perSecond(refusedHere))
	}
	b.print(t)
	b.atMost(perSecond(refused)+" unknown keys a second: p99 of the valid key vs. none",
		results[1].ratio(results[0], (*measurement).p99), 2)
	b.atLeast("Unknown keys refused a second vs. "+thousands(unknownRate), refused/unknownRate, 0.95)
	return nil
}

// sendUnknownKeys sends requests with unknown keys at unknownRate until ctx ends, and returns the
// rate of the responses.
func (f *fixture) sendUnknownKeys(ctx context.Context) (perSecond float64, err error) {
	return f.server.sendAtRate(ctx, unknownConnections, unknownRate, func(c *client, _ time.Time) error {
		got, body, err := c.requestToken(apiKey{secret: newKey(), agentID: f.tenant.keys[0].agentID})
		if err == nil && got.status != http.StatusUnauthorized {
			err = fmt.Errorf("an unknown key got status %d: %s", got.status, body)
		}
		return err
	})
}

// sendAtRate calls send rate times a second until ctx ends, with one of the connections and the
// time at which the request was due. It returns the responses per second. Slow responses do not
// lower the rate unless all connections wait.
func (s *server) sendAtRate(ctx context.Context, connections, rate int, send func(c *client, due time.Time) error) (perSecond float64, err error) {
	began := time.Now()
	var answered atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	interval := time.Second * time.Duration(connections) / time.Duration(rate)
	for i := range connections {
		group.Go(func() error {
			c, err := dial(context.WithoutCancel(ctx), s.address, time.Now().Add(24*time.Hour))
			if err != nil {
				return err
			}
			defer c.close()
			next := began.Add(interval * time.Duration(i) / time.Duration(connections))
			for ; ctx.Err() == nil; next = next.Add(interval) {
				sleep(ctx, time.Until(next))
				if err := send(c, next); err != nil {
					return err
				}
				answered.Add(1)
			}
			return nil
		})
	}
	err = group.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return float64(answered.Load()) / time.Since(began).Seconds(), err
}
