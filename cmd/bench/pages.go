package main

import (
	"context"
	"errors"
	"fmt"
)

// pages measures how long a page takes, while nothing else happens and while the API is under full
// load with the keys of the same account.
func (b *bench) pages(ctx context.Context) error {
	tenant, err := b.newTenant(ctx, b.cluster, "pages", maxKeys)
	if err != nil {
		return err
	}
	fillErr := tenant.fillPages(ctx, b.large)
	s, err := b.startPortal(ctx, tenant)
	if err := errors.Join(fillErr, err); err != nil {
		return err
	}
	paths := []string{"/api-keys", "/activity", "/agents"}
	alone, aloneErr := s.pageLoads(ctx, b.cluster, paths...)
	loaded, err := s.pageLoads(ctx, b.cluster, paths...)
	if err := errors.Join(err, aloneErr); err != nil {
		return err
	}
	for _, l := range loaded {
		l.rate = 10
		l.beside(&load{servers: []*server{s}, keys: tenant.keys, connections: busy})
	}
	results, err := b.interleave(ctx, append(alone, loaded...)...)
	if err != nil {
		return err
	}
	var rows [][]string
	for i, path := range paths {
		r, under := results[i], results[len(paths)+i]
		rows = append(rows, loadRow(r, r, path, "alone"), loadRow(under, r, path, "full load of the API"))
		b.target(path+" under full load: p50 in ms", under.median(p50)/1e6, "≤", 5)
		b.target(path+" under full load: p99 in ms", under.median(p99)/1e6, "≤", 25)
	}
	b.print("Pages", fmt.Sprintf("PostgreSQL. The account has %d keys in use, %s activities and 1,000 agents. Alone, one client\n"+
		"loads the page again and again. Under full load it loads 10 a second while %d connections use the API with the keys of\n"+
		"the account; CPU is then for a request of either.", maxKeys, thousands(b.large), busy),
		"page | | "+loadHeader("alone"), rows)
	return nil
}

// fillPages gives the first account activities, agents, and 30 days of usage before today.
func (t *tenant) fillPages(ctx context.Context, activities int) error {
	return t.exec(ctx,
		fmt.Sprintf(`INSERT INTO agents (id, account_id, name, created_at)
			SELECT gen_random_uuid(), '%s', 'Agent ' || i, now() FROM generate_series(2, 1000) AS i`, t.accountID),
		fmt.Sprintf(`INSERT INTO activities (id, account_id, actor_kind, action, subject_id, label, former_label, address, at)
			SELECT gen_random_uuid(), account_id, 'operator', 'key.renamed', id, 'Bench', 'Former', '', now() - i * interval '1 second'
			FROM generate_series(1, %d) AS i CROSS JOIN api_keys`, activities/maxKeys),
		`INSERT INTO api_key_daily_usage (api_key_id, day, requests)
			SELECT id, current_date - i, 100 * i FROM generate_series(1, 30) AS i CROSS JOIN api_keys`)
}
