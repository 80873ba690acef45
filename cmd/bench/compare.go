package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
)

// busy is how many connections a load has unless that is what is varied.
const busy = 64

// modes are the servers that are compared.
type modes struct {
	limit, postgres, sqlite *load
	// The plain handler: with the collector's aim of all the others; as Go sets
	// it; and with a database that it asks for each key.
	plain, plainCollector, plainDatabase *load
}

func (m *modes) all() []*load {
	return []*load{m.limit, m.plain, m.plainCollector, m.plainDatabase, m.postgres, m.sqlite}
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
	limitURL := "sqlite:" + filepath.Join(b.dir, database+"-limit.db") // it has to have one, and does not ask it
	for _, start := range []struct {
		as       **load
		tenant   tenant
		database *cluster
		server   func(tenant) (*server, error)
	}{
		{&m.limit, sqlite, nil, func(t tenant) (*server, error) {
			return b.startPortal(ctx, "limit", b.programs.limit, limitURL, t)
		}},
		{&m.plain, sqlite, nil, func(t tenant) (*server, error) {
			return b.startPlain(ctx, "plain Gin handler", "", t)
		}},
		{&m.plainCollector, sqlite, nil, func(t tenant) (*server, error) {
			return b.startPlain(ctx, "the same, collector as Go sets it", "", t, "GOGC=100", "GOMEMLIMIT=off")
		}},
		{&m.plainDatabase, postgres, b.cluster, func(t tenant) (*server, error) {
			return b.startPlain(ctx, "plain, a statement for each request", postgresURL, t)
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
		*start.as = &load{name: s.name, servers: []*server{s}, requests: start.tenant.requests(1), database: start.database}
	}
	return m, nil
}

// compare measures the portal on either database against the limit and against
// a plain handler.
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
		title: "The store against none",
		about: "POST /api/widget/token with one key. The limit is the same program with the store replaced by a constant; the plain " +
			"handler is untuned Gin, encoding/json, golang-jwt and Ed25519 with neither store nor log; one of them asks PostgreSQL for each key, " +
			"by a prepared statement. All but one have the collector's aim that the portal sets. CPU is per request; SQLite's is the server's.",
		header: []string{"connections", "", "requests/s", "of the limit", "p50", "p99", "CPU server", "CPU database"},
	}
	for _, n := range b.connections {
		for i, l := range m.all() {
			r := results[n][i]
			database := "–"
			if l.database != nil {
				database = microseconds(r.median((*measurement).databaseCPUPerRequest))
			}
			t.add(strconv.Itoa(n), l.name, perSecond(r.median((*measurement).rate)), ratio(r.ratio(results[n][0], (*measurement).rate)),
				milliseconds(r.median((*measurement).p50)), milliseconds(r.median((*measurement).p99)),
				microseconds(r.median((*measurement).serverCPUPerRequest)), database)
		}
	}
	b.print(t)

	atBusy := map[*load]rounds{}
	for i, l := range m.all() {
		atBusy[l] = results[busy][i]
	}
	for _, l := range []*load{m.postgres, m.sqlite} {
		r, plain := atBusy[l], atBusy[m.plain]
		at := fmt.Sprintf("%s at %d connections: ", l.name, busy)
		b.atLeast(at+"requests/s, of the limit", r.ratio(atBusy[m.limit], (*measurement).rate), 0.78)
		b.atLeast(at+"requests/s, of the plain handler", r.ratio(plain, (*measurement).rate), 1)
		b.atMost(at+"p99, of the plain handler's", r.ratio(plain, (*measurement).p99), 1)
	}
	return nil
}
