package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// soakPortal sends a moderate load for a long time, with a user of the portal beside it, and shows
// whether the portal's resources grow.
func (b *bench) soakPortal(ctx context.Context) error {
	const rate, keys, samples = 200, 1_000, 12
	length := min(30*time.Second, b.soak/samples)
	tenant, err := b.newTenant(ctx, b.cluster, "soak", keys+1+int(b.soak/length))
	if err != nil {
		return err
	}
	s, err := b.startPortal(ctx, tenant)
	if err != nil {
		return err
	}
	visitor, err := s.pageLoads(ctx, nil, "/api-keys")
	if err != nil {
		return err
	}
	visitor[0].rate = 1
	l := &load{name: "soak", servers: []*server{s}, cluster: b.cluster, keys: tenant.keys[:keys], connections: 8, rate: rate}
	l.beside(visitor[0])
	resources := []string{"process_resident_memory_bytes", "go_goroutines", "process_open_fds"}
	values := make([][]float64, len(resources))
	var rows [][]string
	var slow []float64
	for began := time.Now(); time.Since(began) < b.soak; {
		m, err := l.run(ctx, 0, length)
		if err != nil {
			return err
		}
		if err := s.revoke(ctx, tenant.keys[keys+len(rows)]); err != nil {
			return err
		}
		row := []string{
			time.Since(began).Round(time.Second).String(), thousands(int(m[perSecond])), milliseconds(m[p99]), microseconds(m[serverCPU]), microseconds(m[databaseCPU]),
		}
		for i, name := range resources {
			value, err := s.metric(ctx, name)
			if err != nil {
				return err
			}
			values[i] = append(values[i], value)
			row = append(row, thousands(int(value)))
		}
		rows, slow = append(rows, row), append(slow, m[p99])
		progress("%s", strings.Join(row, ", "))
	}
	b.print("Soak", fmt.Sprintf("PostgreSQL, %d requests/s with %s keys for %s, a page of the portal each second, and a revocation every %s.",
		rate, thousands(keys), b.soak, length),
		"after | requests/s | p99 | CPU server | CPU database | "+strings.Join(resources, " | "), rows)
	for i, name := range resources {
		// The first quarter is warm-up.
		quarter := len(rows) / 4
		second, last := values[i][quarter:2*quarter], values[i][len(rows)-quarter:]
		b.target("Soak: "+name+" in the last quarter vs. the second", median(last)/median(second), "≤", 1.1)
	}
	b.target("Soak: median p99 in ms", median(slow)/1e6, "≤", 25)
	return nil
}
