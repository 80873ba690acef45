package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

const (
	// watchInterval is the time between two readings of the metrics under load.
	watchInterval = 200 * time.Millisecond
	// settleTimeout is how long the usage of a load may take to reach the disk.
	settleTimeout = 30 * time.Second
	mebibyte      = 1 << 20
)

// distinctKeys measures loads with different numbers of keys in use, on both databases. It shows
// the cost of writing the usage and the delay of the writes.
func distinctKeys(ctx context.Context, b *bench) error {
	t := table{
		title: "Keys in use",
		about: fmt.Sprintf("%d connections, keys in turn. The warm-up uses each key once. RSS, keys with unwritten usage and flush lag "+
			"(the age of the oldest unwritten usage) are the highest values, warm-up included. "+
			"To disk are the bytes that the portal and the database write; the access log takes a part of them. "+
			"Settled is the time until all usage is on disk after the load, at most 30 s.", busy),
		header: []string{"", "keys in use", "requests/s", "vs. one key", "p50", "p99", "RSS", "unwritten keys", "flush lag", "keys written/s", "to disk/s", "settled after", "CPU server", "CPU database"},
	}
	for _, s := range []struct {
		name string
		url  func() (string, error)
		from *cluster
	}{
		{"PostgreSQL", func() (string, error) { return b.cluster.create(ctx, "distinct") }, b.cluster},
		{"SQLite", func() (string, error) { return "sqlite:" + filepath.Join(b.dir, "distinct.db"), nil }, nil},
	} {
		url, err := s.url()
		if err != nil {
			return err
		}
		if err := b.distinctOn(ctx, &t, s.name, url, s.from); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	b.print(t)
	return nil
}

// distinctOn measures the loads on one database, and then stops the portal under the largest.
func (b *bench) distinctOn(ctx context.Context, t *table, name, url string, database *cluster) error {
	tenant, err := newTenant(ctx, url)
	if err != nil {
		return err
	}
	began, most := time.Now(), b.inUse[len(b.inUse)-1]
	if err := tenant.addKeys(ctx, url, most-1); err != nil {
		return err
	}
	b.progress("%s: created %s keys in %s", name, thousands(most), time.Since(began).Round(time.Second))
	s, err := b.startPortal(ctx, name, b.programs.portal, url, tenant)
	if err != nil {
		return err
	}
	defer s.stop()
	var loads []*load
	var usages []*usageWatch
	for _, n := range b.inUse {
		l := &load{
			name: fmt.Sprintf("%s, %s keys in use", name, thousands(n)), servers: []*server{s},
			keys: tenant.keys[:n], connections: busy, eachKey: true, database: database,
		}
		watch := &usageWatch{server: s}
		l.background = func(underLoad context.Context) error { return watch.run(underLoad, ctx) }
		loads, usages = append(loads, l), append(usages, watch)
	}
	results, err := b.interleave(ctx, loads...)
	if err != nil {
		return err
	}
	for i, l := range loads {
		u := usages[i]
		t.addLoad([]string{name, thousands(b.inUse[i])}, results[i], results[0],
			mebibytes(u.memory), thousands(int(u.unwritten)), seconds(u.lag), perSecond(u.written/u.watched.Seconds()), megabytesPerSecond(results[i]), seconds(u.settled))
		b.judgeInUse(l.name, b.inUse[i], results[i].ratio(results[0], (*measurement).rate), u)
	}
	return b.stopUnderLoad(ctx, name, url, s, loads)
}

// judgeInUse adds the verdicts on one number of keys in use.
func (b *bench) judgeInUse(name string, keys int, versusOne float64, u *usageWatch) {
	switch keys {
	case 1:
		return
	case 1_000_000:
		b.atLeast(name+": requests/s vs. one key", versusOne, 0.85)
		b.atMost(name+": flush lag in seconds", u.lag, 10)
	default:
		b.atLeast(name+": requests/s vs. one key", versusOne, 0.90)
		b.atMost(name+": flush lag in seconds", u.lag, 1)
	}
	b.atMost(name+": RSS in MiB", u.memory/mebibyte, 400)
}

// usageWatch records the highest values of a portal's metrics in all runs of a load.
type usageWatch struct {
	server                 *server
	memory, unwritten, lag float64 // bytes, keys, seconds
	written                float64 // keys
	watched                time.Duration
	settled                float64 // seconds until all usage was on disk after a run
}

// run watches the metrics until underLoad ends, and then until all usage is on disk.
func (u *usageWatch) run(underLoad, ctx context.Context) error {
	first, err := u.server.scrape(ctx)
	if err != nil {
		return err
	}
	began, last := time.Now(), first
	note := func(values map[string]float64) {
		last = values
		u.memory = max(u.memory, values[residentMemory])
		u.unwritten = max(u.unwritten, values[pendingKeys])
		u.lag = max(u.lag, values[flushLag])
	}
	if err := u.server.watch(underLoad, watchInterval, note); err != nil {
		return err
	}
	u.written += last[writtenKeys] - first[writtenKeys]
	u.watched += time.Since(began)
	ended := time.Now()
	settling, settled := context.WithTimeout(ctx, settleTimeout)
	defer settled()
	err = u.server.watch(settling, watchInterval/4, func(values map[string]float64) {
		u.memory = max(u.memory, values[residentMemory])
		if values[pendingKeys] == 0 {
			settled()
		}
	})
	u.settled = max(u.settled, time.Since(ended).Seconds())
	return err
}

// stopUnderLoad stops the portal at the end of the largest load, and compares the usage on disk
// with the accepted requests.
func (b *bench) stopUnderLoad(ctx context.Context, name, url string, s *server, loads []*load) error {
	largest := loads[len(loads)-1]
	largest.background, largest.eachKey = nil, false
	if _, err := largest.run(ctx, b.warmUp(), b.duration); err != nil {
		return err
	}
	began := time.Now()
	s.stop()
	took := time.Since(began)
	if !s.child.ProcessState.Success() {
		return fmt.Errorf("stop the portal: %s", s.child.ProcessState)
	}
	accepted := int64(1) // when the portal became ready
	for _, l := range loads {
		accepted += l.accepted.Load()
	}
	onDisk, err := usageOnDisk(ctx, url)
	if err != nil {
		return err
	}
	b.atMost(largest.name+": SIGTERM to exit in seconds", took.Seconds(), stopTimeout.Seconds())
	b.verdicts = append(b.verdicts, verdict{
		fmt.Sprintf("%s: uses on disk after SIGTERM, of %s accepted requests", name, thousands(int(accepted))),
		thousands(int(accepted)), thousands(int(onDisk)), onDisk == accepted,
	})
	return nil
}

// usageOnDisk returns the number of accepted requests in the database.
func usageOnDisk(ctx context.Context, url string) (n int64, err error) {
	db, err := openDatabase(url)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, table := range []string{"api_key_last_uses", "api_key_hourly_usage"} {
		var requests int64
		if err := db.NewSelect().Table(table).ColumnExpr("COALESCE(sum(requests), 0)").Scan(ctx, &requests); err != nil {
			return 0, err
		}
		n += requests
	}
	return n, nil
}

// megabytesPerSecond formats the bytes that the portal and the database have written a second.
func megabytesPerSecond(r rounds) string {
	return fmt.Sprintf("%.1f MB", r.median((*measurement).writtenPerSecond)/1e6)
}

func mebibytes(bytes float64) string { return fmt.Sprintf("%.0f MiB", bytes/mebibyte) }

func seconds(s float64) string { return fmt.Sprintf("%.2f s", s) }
