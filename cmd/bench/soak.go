package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"portal/models"
)

const (
	soakRate        = 200 // requests a second
	soakConnections = 8
	soakKeys        = 1_000
	soakPages       = time.Second     // between two pages of the visitor
	soakRotations   = 5 * time.Second // between two generated keys
	soakInterval    = 30 * time.Second
	soakSamples     = 10 // at least

	soakGrowth = 0.10 // the largest growth of a resource during the soak
	soakP99    = 25 * time.Millisecond
)

// soak sends a moderate load for a long time, with a user of the portal beside it, and shows
// whether the portal's resources grow. The latency of a request that was sent late includes the
// delay.
func soak(ctx context.Context, b *bench) (err error) {
	f, err := b.newFixture(ctx, "soak", soakKeys, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	// The visitor needs room for one more key in the first account.
	if err := f.revoke(ctx, f.tenant.keys[models.MaxActiveKeys-1]); err != nil {
		return err
	}
	keys := slices.Delete(f.tenant.keys[:soakKeys], models.MaxActiveKeys-1, models.MaxActiveKeys)
	visitor, err := f.server.signIn(ctx)
	if err != nil {
		return err
	}
	var latencies latencies
	samples := &soakLog{bench: b, server: f.server, latencies: &latencies}
	limited, cancel := context.WithTimeout(ctx, b.soak)
	defer cancel()
	group, groupCtx := errgroup.WithContext(limited)
	group.Go(func() error {
		next := 0
		var mu sync.Mutex
		_, err := f.server.sendAtRate(groupCtx, soakConnections, soakRate, func(c *client, due time.Time) error {
			mu.Lock()
			key := keys[next%len(keys)]
			next++
			mu.Unlock()
			got, body, err := c.requestToken(key)
			if err == nil && got != f.server.want {
				err = fmt.Errorf("status %d: %s", got.status, body)
			}
			latencies.record(time.Since(due))
			return err
		})
		return err
	})
	group.Go(func() error { return visitor.readPages(groupCtx, soakPages, measuredPages) })
	group.Go(func() error { return visitor.rotateKeys(groupCtx, soakRotations) })
	group.Go(func() error { return samples.collect(groupCtx) })
	if err := group.Wait(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	samples.report()
	return nil
}

// latencies is a histogram for several goroutines.
type latencies struct {
	mu sync.Mutex
	histogram
}

func (l *latencies) record(latency time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.histogram.record(latency)
}

// take returns the histogram and empties it.
func (l *latencies) take() histogram {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.histogram
	l.histogram = histogram{}
	return taken
}

// soakLog is the samples of a soak.
type soakLog struct {
	bench     *bench
	server    *server
	latencies *latencies

	hours                                []float64 // since the start
	memory, goroutines, files, latencyNs []float64
	requests                             []int
}

// collect takes a sample at the end of each interval until ctx ends.
func (s *soakLog) collect(ctx context.Context) error {
	interval := min(soakInterval, s.bench.soak/soakSamples)
	began := time.Now()
	for {
		sleep(ctx, time.Until(began.Add(time.Duration(len(s.hours)+1)*interval)))
		// The last sample is due when ctx ends.
		values, err := s.server.scrape(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		h := s.latencies.take()
		s.hours = append(s.hours, time.Since(began).Hours())
		s.memory = append(s.memory, values[residentMemory]/mebibyte)
		s.goroutines = append(s.goroutines, values[goroutines])
		s.files = append(s.files, values[openFiles])
		s.latencyNs = append(s.latencyNs, float64(h.percentile(0.99)))
		s.requests = append(s.requests, h.total)
		s.bench.progress("soak: %s, %.0f MiB, %d requests", time.Since(began).Round(time.Second), values[residentMemory]/mebibyte, h.total)
		if ctx.Err() != nil {
			return nil
		}
	}
}

func (s *soakLog) report() {
	b := s.bench
	t := table{
		title: "Soak",
		about: fmt.Sprintf("PostgreSQL. %d requests/s with %s keys for %s, a page of the portal each second, and a key generated and revoked every %s. "+
			"p99 is of the requests in the interval. The slope is that of the line of least squares without the first quarter.",
			soakRate, thousands(soakKeys), b.soak, soakRotations),
		header: []string{"after", "requests", "RSS", "goroutines", "file handles", "p99"},
	}
	for i, hours := range s.hours {
		t.add(time.Duration(hours*float64(time.Hour)).Round(time.Second).String(), thousands(s.requests[i]), fmt.Sprintf("%.0f MiB", s.memory[i]),
			fmt.Sprintf("%.0f", s.goroutines[i]), fmt.Sprintf("%.0f", s.files[i]), milliseconds(s.latencyNs[i]))
	}
	slope := func(values []float64) float64 { return slopeOf(s.hours[len(s.hours)/4:], values[len(values)/4:]) }
	t.add("slope an hour", "", fmt.Sprintf("%+.1f MiB", slope(s.memory)), fmt.Sprintf("%+.0f", slope(s.goroutines)),
		fmt.Sprintf("%+.0f", slope(s.files)), fmt.Sprintf("%+.2f ms", slope(s.latencyNs)/float64(time.Millisecond)))
	b.print(t)
	length := s.hours[len(s.hours)-1]
	for _, r := range []struct {
		name   string
		values []float64
	}{{"RSS", s.memory}, {"goroutines", s.goroutines}, {"file handles", s.files}} {
		b.atMost("Soak: growth of "+r.name+" by its slope vs. median", slope(r.values)*length/median(r.values), soakGrowth)
	}
	b.atMost("Soak: median p99 in ms", median(s.latencyNs)/float64(time.Millisecond), float64(soakP99.Milliseconds()))
}

// slopeOf returns the slope of the line of least squares through the points.
func slopeOf(x, y []float64) float64 {
	var meanX, meanY, xy, xx float64
	for i := range x {
		meanX += x[i] / float64(len(x))
		meanY += y[i] / float64(len(y))
	}
	for i := range x {
		xy += (x[i] - meanX) * (y[i] - meanY)
		xx += (x[i] - meanX) * (x[i] - meanX)
	}
	return xy / xx
}
