package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// confirmedRevocations revokes keys that are in use on two instances under load. It counts the
// requests that begin after the revocation was confirmed and still succeed. There must be none.
func confirmedRevocations(ctx context.Context, b *bench) (err error) {
	f, err := b.newFixture(ctx, "revocation", 1, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	second, err := b.startPortal(ctx, "PostgreSQL", b.programs.portal, f.url, f.tenant)
	if err != nil {
		return err
	}
	defer second.stop()
	instances := []*server{f.server, second}

	loadCtx, endLoad := context.WithCancel(ctx)
	defer endLoad()
	loaded := make(chan error, 1)
	background := f.load("load on two instances", f.tenant.keys[:1])
	background.servers = instances
	go func() {
		_, err := background.run(loadCtx, 0, time.Hour)
		loaded <- err
	}()
	var sum watched
	for n := range b.revocations {
		w, err := f.revokeInUse(ctx, instances)
		if err != nil {
			return fmt.Errorf("revocation %d: %w", n+1, err)
		}
		sum.accepted += w.accepted
		sum.refused += w.refused
		sum.violations += w.violations
		if (n+1)%100 == 0 {
			b.progress("%d keys revoked", n+1)
		}
	}
	endLoad()
	if err := <-loaded; !errors.Is(err, context.Canceled) {
		return err
	}

	t := table{
		title:  "Revocation at once",
		about:  fmt.Sprintf("PostgreSQL, two instances, %d connections. A third process revokes keys that are in use.", busy),
		header: []string{"revocations", "requests before", "refused, begun after", "accepted, begun after"},
	}
	t.add(strconv.Itoa(b.revocations), strconv.Itoa(sum.accepted), strconv.Itoa(sum.refused), strconv.Itoa(sum.violations))
	b.print(t)
	b.verdicts = append(b.verdicts, verdict{
		fmt.Sprintf("Requests begun after a confirmed revocation that succeed, in %d revocations", b.revocations),
		"0", strconv.Itoa(sum.violations), sum.violations == 0,
	})
	return nil
}

// watched counts the responses to requests with one key.
type watched struct {
	accepted   int // begun before the revocation was confirmed
	refused    int // begun after it
	violations int // begun after it and accepted
}

const (
	watchersEach  = 4 // connections with the revoked key to each instance
	watchedAfter  = 5 // requests on each connection after the revocation was confirmed
	shortestUse   = 5 * time.Millisecond
	longestUse    = 25 * time.Millisecond
	watchDeadline = 30 * time.Second
)

// revocationClock holds when a revocation began and when it was confirmed, in nanoseconds since
// zero. 0 means not yet.
type revocationClock struct {
	zero             time.Time
	began, confirmed atomic.Int64
}

func (c *revocationClock) now() int64 { return int64(time.Since(c.zero)) }

// revokeInUse revokes a key while all instances get requests with it.
func (f *fixture) revokeInUse(ctx context.Context, instances []*server) (sum watched, err error) {
	clock := &revocationClock{zero: time.Now()}
	key := f.spare[0]
	group, groupCtx := errgroup.WithContext(ctx)
	results := make([]watched, watchersEach*len(instances))
	for i := range results {
		group.Go(func() error {
			c, err := dial(groupCtx, instances[i%len(instances)].address, time.Now().Add(watchDeadline))
			if err != nil {
				return err
			}
			defer c.close()
			results[i], err = c.watch(groupCtx, key, clock)
			return err
		})
	}
	sleep(ctx, shortestUse+rand.N(longestUse-shortestUse)) //nolint:gosec // need not be unpredictable
	clock.began.Store(clock.now())
	revokeErr := f.revokeNext(ctx)
	clock.confirmed.Store(clock.now())
	err = errors.Join(revokeErr, group.Wait())
	for _, w := range results {
		sum.accepted += w.accepted
		sum.refused += w.refused
		sum.violations += w.violations
	}
	if err == nil && sum.accepted == 0 {
		err = errors.New("no request was accepted before the revocation")
	}
	return sum, err
}

// watch sends requests until enough have begun after the confirmation.
func (c *client) watch(ctx context.Context, key apiKey, clock *revocationClock) (w watched, err error) {
	for w.refused+w.violations < watchedAfter && ctx.Err() == nil {
		begun := clock.now()
		got, body, err := c.requestToken(key)
		if err != nil {
			return w, err
		}
		confirmed := clock.confirmed.Load()
		after := confirmed != 0 && begun > confirmed
		switch {
		case got.status == http.StatusOK && after:
			w.violations++
		case got.status == http.StatusOK:
			w.accepted++
		case got.status == http.StatusUnauthorized && after:
			w.refused++
		case got.status == http.StatusUnauthorized && clock.began.Load() != 0:
			// The key was revoked during the request, so either response is right.
		default:
			return w, fmt.Errorf("status %d before the revocation began: %s", got.status, body)
		}
	}
	return w, ctx.Err()
}
