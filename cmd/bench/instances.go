package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// instances measures 1 and 8 instances on one database at fixed rates, and computes from the
// database's CPU time how many instances one core of the primary carries. After that, it revokes
// keys that are in use on all instances.
func (b *bench) instances(ctx context.Context) error {
	const most, keys, connections = 8, 1_000, 8
	tenant, err := b.newTenant(ctx, b.cluster, "instances", 2*keys)
	if err != nil {
		return err
	}
	for range most {
		if _, err := b.startPortal(ctx, tenant); err != nil {
			return err
		}
	}
	// All instances run during all loads, so their cost without requests is measured once.
	loads := []*load{{name: "idle", servers: b.servers, cluster: b.cluster}}
	for _, rate := range []int{100, 500} {
		for _, n := range []int{1, most} {
			loads = append(loads, &load{
				name: thousands(rate), servers: b.servers[:n], cluster: b.cluster, keys: tenant.keys[:keys], connections: n * connections, rate: n * rate,
			})
		}
	}
	results, err := b.interleave(ctx, loads...)
	if err != nil {
		return err
	}
	idle := results[0].mean(databaseLoad) / most
	var rows [][]string
	for i, l := range loads[1:] {
		r, one, n := results[1+i], results[1+i-i%2], float64(len(l.servers))
		used, usedByOne := (r.mean(databaseLoad)-idle*most)/n, one.mean(databaseLoad)-idle*most
		rows = append(rows, append(loadRow(r, one, l.name, strconv.Itoa(len(l.servers))),
			thousands(int(r.mean(statements))), thousands(int(float64(time.Second)/(idle+used)))))
		if len(l.servers) == most {
			b.target(fmt.Sprintf("%d instances, %s requests/s to each: CPU database a request vs. 1 instance", most, l.name), used/usedByOne, "≤", 1.2)
		}
	}
	var open int
	if err := b.cluster.QueryRowContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = 'instances'").Scan(&open); err != nil {
		return err
	}
	b.print("Instances on one database", fmt.Sprintf("PostgreSQL, %s keys in turn, a fixed rate of requests to each instance over %d connections.\n"+
		"Statements are transactions of the database, those of usage counts included. An instance without requests costs the\n"+
		"database %s of CPU a second. The last column is the number of instances that one core of the primary carries at\n"+
		"this rate. After these loads, %d instances had %d connections to the database.", thousands(keys), connections, milliseconds(idle), most, open),
		"requests/s to each | instances | "+loadHeader("1 instance")+" | statements/s | one core carries", rows)
	return b.revokeAcross(ctx, b.servers, tenant.keys[:keys], tenant.keys[keys:])
}

// revokeAcross revokes the spare keys while they are in use on all instances under load, and counts
// the requests that begin after the confirmation and still succeed. There must be none.
func (b *bench) revokeAcross(ctx context.Context, servers []*server, keys, spare []apiKey) error {
	var took []time.Duration
	violations := 0
	l := &load{
		name: "revocations", servers: servers, cluster: b.cluster, keys: keys, connections: 8 * len(servers), rate: 100 * len(servers), others: &atomic.Int64{},
	}
	l.background = func(ctx context.Context) error {
		for ctx.Err() == nil && len(took) < len(spare) {
			key := spare[len(took)]
			if n, err := useEverywhere(ctx, servers, key); err != nil || n < len(servers) {
				return fmt.Errorf("%d instances accept the key: %w", n, err)
			}
			began := time.Now()
			if err := servers[0].revoke(ctx, key); err != nil {
				return err
			}
			took = append(took, time.Since(began))
			accepted, err := useEverywhere(ctx, servers, key)
			if err != nil {
				return err
			}
			violations += accepted
			l.others.Add(int64(2*len(servers) + 1))
		}
		return nil
	}
	m, err := l.run(ctx, 0, max(time.Duration(b.rounds)*b.duration, 3*time.Second))
	if err != nil {
		return err
	}
	slices.Sort(took)
	confirmed := func(percent int) string { return milliseconds(float64(took[(len(took)-1)*percent/100])) }
	b.print("Revocation across instances", fmt.Sprintf("PostgreSQL, %d instances with 100 requests a second each. One instance revokes keys that\n"+
		"all instances have just accepted. When the revocation is confirmed, each instance gets another request with the key.", len(servers)),
		"revocations | accepted afterwards | confirmed after: p50 | p99 | CPU server | CPU database", [][]string{{
			thousands(len(took)), thousands(violations), confirmed(50), confirmed(99), microseconds(m[serverCPU]), microseconds(m[databaseCPU]),
		}})
	b.target(fmt.Sprintf("Requests after a confirmed revocation that succeed, of %s", thousands(len(took)*len(servers))), float64(violations), "=", 0)
	return nil
}

// useEverywhere sends a request with the key to each instance at the same time, and returns how
// many succeed.
func useEverywhere(ctx context.Context, servers []*server, key apiKey) (int, error) {
	var group errgroup.Group
	var accepted atomic.Int64
	for _, s := range servers {
		group.Go(func() error {
			c, err := dial(context.WithoutCancel(ctx), s.address, stopTimeout)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			status, body, err := c.send(tokenRequest(key))
			if status == http.StatusOK {
				accepted.Add(1)
			} else if err == nil && status != http.StatusUnauthorized {
				err = fmt.Errorf("status %d: %s", status, body)
			}
			return err
		})
	}
	err := group.Wait()
	return int(accepted.Load()), err
}
