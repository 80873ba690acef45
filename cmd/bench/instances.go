package main

import (
	"context"
	"errors"
	"fmt"
)

// fourInstances compares one instance with four instances on the same database, and counts the
// statements that reach the database.
func fourInstances(ctx context.Context, b *bench) (err error) {
	f, err := b.newFixture(ctx, "instances", 1, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	four := []*server{f.server}
	defer func() {
		for _, s := range four[1:] {
			s.stop()
		}
	}()
	for len(four) < 4 {
		s, err := b.startPortal(ctx, "PostgreSQL", b.programs.portal, f.url, f.tenant)
		if err != nil {
			return err
		}
		four = append(four, s)
	}
	one := f.load("1 instance", f.tenant.keys[:1])
	all := f.load("4 instances", one.keys)
	all.servers = four
	loads := []*load{one, all}
	results, err := b.interleave(ctx, loads...)
	if err != nil {
		return err
	}

	t := table{
		title: "Instances on one database",
		about: fmt.Sprintf("PostgreSQL, one key, %d connections in all. Statements are the transactions in pg_stat_database. "+
			"They include the writes of usage counts.", busy),
		header: []string{"", "requests/s", "vs. 1 instance", "p50", "p99", "statements/s", "requests per statement", "CPU servers", "CPU database"},
	}
	for i, l := range loads {
		r := results[i]
		perStatement := func(m *measurement) float64 { return m.rate() / m.statementsPerSecond() }
		t.addLoad([]string{l.name}, r, results[0],
			perSecond(r.median((*measurement).statementsPerSecond)), fmt.Sprintf("%.1f", r.median(perStatement)))
	}
	b.print(t)
	return nil
}
