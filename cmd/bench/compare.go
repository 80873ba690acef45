package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
)

// busy is the default number of connections of a load.
const busy = 64

// modes are the loads on the servers that are compared.
type modes struct {
	baseline, postgres, sqlite *load

	plain          *load // with the garbage-collector target of the portal
	plainCollector *load // with Go's default target
	plainDatabase  *load // with a prepared statement for each request
}

func (m *modes) all() []*load {
	return []*load{m.baseline, m.plain, m.plainCollector, m.plainDatabase, m.postgres, m.sqlite}
}

func (m *modes) stop() {
	for _, l := range m.all() {
		if l != nil {
			l.servers[0].stop()
		}
	}
}

// startModes starts a server of each kind.
func (b *bench) startModes(ctx context.Context, database string) (m *modes, err error) {
	m = &modes{}
	defer func() {
		if err != nil {
			m.stop()
		}
	}()
	postgresURL, err := b.cluster.create(ctx, database)
	if err != nil {
		return m, err
	}
	postgres, err := newTenant(ctx, postgresURL)
	if err != nil {
		return m, err
	}
	sqliteURL := "sqlite:" + filepath.Join(b.dir, database+".db")
	sqlite, err := newTenant(ctx, sqliteURL)
	if err != nil {
		return m, err
	}
	baselineURL := "sqlite:" + filepath.Join(b.dir, database+"-baseline.db") // required, but unused
	for _, start := range []struct {
		as       **load
		tenant   tenant
		database *cluster
		server   func(tenant) (*server, error)
	}{
		{&m.baseline, sqlite, nil, func(t tenant) (*server, error) {
			return b.startPortal(ctx, "baseline", b.programs.baseline, baselineURL, t)
		}},
		{&m.plain, sqlite, nil, func(t tenant) (*server, error) {
			return b.startPlain(ctx, "plain Gin handler", "", t)
		}},
		{&m.plainCollector, sqlite, nil, func(t tenant) (*server, error) {
			return b.startPlain(ctx, "plain, Go's default GC target", "", t, "GOGC=100", "GOMEMLIMIT=off")
		}},
		{&m.plainDatabase, postgres, b.cluster, func(t tenant) (*server, error) {
			return b.startPlain(ctx, "plain, a statement per request", postgresURL, t)
		}},
		{&m.postgres, postgres, b.cluster, func(t tenant) (*server, error) {
			return b.startPortal(ctx, "PostgreSQL", b.programs.portal, postgresURL, t)
		}},
		{&m.sqlite, sqlite, nil, func(t tenant) (*server, error) {
			return b.startPortal(ctx, "SQLite", b.programs.portal, sqliteURL, t)
		}},
	} {
		s, err := start.server(start.tenant)
		if err != nil {
			return m, err
		}
		*start.as = &load{name: s.name, servers: []*server{s}, keys: start.tenant.keys[:1], database: start.database}
	}
	return m, nil
}

// compare measures the portal on both databases against the portal without a store and against a
// plain handler.
func compare(ctx context.Context, b *bench) error {
	m, err := b.startModes(ctx, "compare")
	if err != nil {
		return err
	}
	defer m.stop()
	results := map[int][]rounds{}
	for _, n := range b.connections {
		for _, l := range m.all() {
			l.connections = n
		}
		if results[n], err = b.interleave(ctx, m.all()...); err != nil {
			return err
		}
	}

	t := table{
		title: "One key",
		about: "POST /api/widget/token with one key. The baseline is the portal with a constant in place of the store. " +
			"The plain handler is untuned Gin, encoding/json, golang-jwt and Ed25519, without a store or a log. " +
			"One plain handler runs one prepared PostgreSQL statement per request. " +
			"All modes but one use the portal's garbage-collector target. CPU is per request.",
		header: []string{"connections", "", "requests/s", "vs. baseline", "p50", "p99", "CPU server", "CPU database"},
	}
	for _, n := range b.connections {
		for i, l := range m.all() {
			t.addLoad([]string{strconv.Itoa(n), l.name}, results[n][i], results[n][0])
		}
	}
	b.print(t)

	atBusy := map[*load]rounds{}
	for i, l := range m.all() {
		atBusy[l] = results[busy][i]
	}
	for _, l := range []*load{m.postgres, m.sqlite} {
		r, plain, collector := atBusy[l], atBusy[m.plain], atBusy[m.plainCollector]
		at := fmt.Sprintf("%s at %d connections: ", l.name, busy)
		b.atLeast(at+"requests/s vs. baseline", r.ratio(atBusy[m.baseline], (*measurement).rate), 0.78)
		b.atLeast(at+"requests/s vs. plain handler, Go's default GC target", r.ratio(collector, (*measurement).rate), 1)
		b.atLeast(at+"requests/s vs. plain handler", r.ratio(plain, (*measurement).rate), 0.92)
		b.atMost(at+"p99 vs. plain handler", r.ratio(plain, (*measurement).p99), 1)
	}
	return nil
}
