package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// keysInUse measures loads with different numbers of keys in use, on both databases. It shows the
// cost of writing the usage, the delay of the writes, and that a stop loses none of it.
func (b *bench) keysInUse(ctx context.Context) error {
	onPostgres, postgresErr := b.keysOn(ctx, "PostgreSQL", b.cluster, 0.95)
	onSQLite, sqliteErr := b.keysOn(ctx, "SQLite", nil, 0.8)
	if err := errors.Join(postgresErr, sqliteErr); err != nil {
		return err
	}
	b.print("Keys in use", fmt.Sprintf("%d connections, keys in turn. The first warm-up uses each key once. Flush lag is the age of the\n"+
		"oldest usage that is not in the database. It and RSS are the highest values, warm-ups included. The load with\n"+
		"revocations comes after the others, because a revocation empties the caches of all instances.", busy), "| keys in use | "+loadHeader("one key")+" | RSS | flush lag", append(onPostgres, onSQLite...))
	return nil
}

// keysOn measures the loads on one database, and then stops the portal after the largest. The
// wanted ratio is that of the requests a second with all keys to those with one.
func (b *bench) keysOn(ctx context.Context, name string, on *cluster, wanted float64) (rows [][]string, err error) {
	// Enough keys for a revocation a second in all rounds of a load.
	tenant, err := b.newTenant(ctx, on, "keys", b.large+b.rounds*(20+int(b.duration/time.Second)))
	if err != nil {
		return nil, err
	}
	s, err := b.startPortal(ctx, tenant)
	if err != nil {
		return nil, err
	}
	var loads []*load
	var peaks []*peak
	add := func(keys int, name string, spare []apiKey) {
		p := &peak{server: s, spare: spare}
		peaks = append(peaks, p)
		loads = append(loads, &load{
			name: name, servers: []*server{s}, cluster: on, keys: tenant.keys[:keys], connections: busy, eachKey: true, background: p.watch,
		})
	}
	for _, n := range []int{1, b.large / 10, b.large} {
		add(n, thousands(n), nil)
	}
	add(b.large/10, thousands(b.large/10)+", a revocation a second", tenant.keys[b.large:])
	results, err := b.interleave(ctx, loads[:3]...)
	if err != nil {
		return nil, err
	}
	revoking, err := b.interleave(ctx, loads[3])
	if err != nil {
		return nil, err
	}
	for i, r := range append(results, revoking...) {
		l, p := loads[i], peaks[i]
		rows = append(rows, append(loadRow(r, results[0], name, l.name), fmt.Sprintf("%.0f MiB", p.memory), fmt.Sprintf("%.2f s", p.lag)))
		if len(l.keys) == b.large {
			figure := name + ", keys in use: " + l.name + ": "
			b.target(figure+"requests/s vs. one key", r.ratio(results[0], perSecond), "≥", wanted)
			b.target(figure+"flush lag in seconds", p.lag, "≤", 1)
			b.target(figure+"RSS in MiB", p.memory, "≤", 400)
		}
	}
	// A stop right after the largest load must lose no usage.
	if _, err := loads[2].run(ctx, 0, b.duration); err != nil {
		return nil, err
	}
	began := time.Now()
	b.stopServers()
	b.target(name+": SIGTERM to exit in seconds", time.Since(began).Seconds(), "≤", stopTimeout.Seconds())
	accepted := int64(1) // when the portal became ready
	for _, l := range loads {
		accepted += l.accepted.Load()
	}
	var used int64
	err = tenant.QueryRowContext(ctx, "SELECT (SELECT COALESCE(sum(requests), 0) FROM api_key_last_uses) + "+
		"(SELECT COALESCE(sum(requests), 0) FROM api_key_hourly_usage)").Scan(&used)
	b.target(name+": uses in the database after SIGTERM", float64(used), "=", float64(accepted))
	return rows, err
}

// peak records the highest values of a portal's metrics in all runs of a load.
type peak struct {
	server      *server
	spare       []apiKey // one is revoked a second
	memory, lag float64  // MiB, seconds
}

// watch reads the metrics and revokes keys until ctx ends.
func (p *peak) watch(ctx context.Context) error {
	for i := 0; ctx.Err() == nil; i++ {
		if i%5 == 0 && len(p.spare) > 0 {
			if err := p.server.revoke(ctx, p.spare[0]); err != nil {
				return err
			}
			p.spare = p.spare[1:]
		}
		memory, memoryErr := p.server.metric(ctx, "process_resident_memory_bytes")
		lag, lagErr := p.server.metric(ctx, "portal_usage_flush_lag_seconds")
		if err := errors.Join(memoryErr, lagErr); err != nil && ctx.Err() == nil {
			return err
		}
		p.memory, p.lag = max(p.memory, memory/(1<<20)), max(p.lag, lag)
		sleep(ctx, 200*time.Millisecond)
	}
	return nil
}
