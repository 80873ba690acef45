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
	limit, plain, postgres, sqlite *load
}

func (m modes) all() []*load { return []*load{m.limit, m.plain, m.postgres, m.sqlite} }

func (m modes) stop() {
	for _, l := range m.all() {
		if l != nil {
			l.servers[0].stop()
		}
	}
}

// startModes starts a server of each kind.
func (b *bench) startModes(ctx context.Context, database string) (m modes, err error) {
	defer func() {
		if err != nil {
			m.stop()
		}
	}()
	postgresURL, err := b.cluster.create(ctx, database)
	if err != nil {
		return m, err
	}
	sqliteURL := "sqlite:" + filepath.Join(b.dir, database+".db")
	limitURL := "sqlite:" + filepath.Join(b.dir, database+"-limit.db") // it has to have one, and does not ask it
	for _, start := range []struct {
		as        **load
		name      string
		program   string
		url       string
		databases *cluster
	}{
		{&m.limit, "limit", b.programs.limit, limitURL, nil},
		{&m.postgres, "PostgreSQL", b.programs.portal, postgresURL, b.cluster},
		{&m.sqlite, "SQLite", b.programs.portal, sqliteURL, nil},
	} {
		t, err := newTenant(ctx, start.url)
		if err != nil {
			return m, err
		}
		s, err := b.startPortal(ctx, start.name, start.program, start.url, t)
		if err != nil {
			return m, err
		}
		*start.as = &load{name: start.name, servers: []*server{s}, requests: t.requests(1), database: start.databases}
		if m.plain == nil {
			s, err := b.startPlain(ctx, t)
			if err != nil {
				return m, err
			}
			m.plain = &load{name: s.name, servers: []*server{s}, requests: t.requests(1)}
		}
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
			"handler is untuned Gin, encoding/json, golang-jwt and Ed25519 with neither store nor log. CPU is per request; SQLite's is the server's.",
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

	limit, plain := results[busy][0], results[busy][1]
	for i, l := range m.all()[2:] {
		r := results[busy][2+i]
		at := fmt.Sprintf("%s at %d connections: ", l.name, busy)
		b.atLeast(at+"requests/s, of the limit", r.ratio(limit, (*measurement).rate), 0.78)
		b.atLeast(at+"requests/s, of the plain handler", r.ratio(plain, (*measurement).rate), 1)
		b.atMost(at+"p99, of the plain handler's", r.ratio(plain, (*measurement).p99), 1)
	}
	return nil
}
