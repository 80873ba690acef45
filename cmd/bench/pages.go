package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pages measures how long the page of the API keys takes on both databases, while nothing else
// happens and while the API is under full load with the keys of the same account.
func (b *bench) pages(ctx context.Context) error {
	onPostgres, postgresErr := b.pageOn(ctx, "PostgreSQL", b.cluster)
	onSQLite, sqliteErr := b.pageOn(ctx, "SQLite", nil)
	if err := errors.Join(postgresErr, sqliteErr); err != nil {
		return err
	}
	b.print("Pages", fmt.Sprintf("The page `/api-keys` of an account with %d keys in use. Alone, one client loads it again and\n"+
		"again. Under full load it loads 20 a second while %d connections use the API with the keys of the account; CPU is then\n"+
		"for a request of either.", maxKeys, busy),
		"| | "+loadHeader("alone"), append(onPostgres, onSQLite...))
	return nil
}

func (b *bench) pageOn(ctx context.Context, name string, on *cluster) ([][]string, error) {
	tenant, err := b.newTenant(ctx, on, "pages", maxKeys)
	if err != nil {
		return nil, err
	}
	var days []string // 30 days of usage before today
	for i := range 30 * maxKeys {
		day := time.Now().UTC().AddDate(0, 0, -1-i/maxKeys).Format(time.DateOnly)
		days = append(days, fmt.Sprintf("('%s', '%s 00:00:00+00:00', %d)", tenant.keys[i%maxKeys].id, day, 100+i))
	}
	fillErr := tenant.exec(ctx, insert("api_key_daily_usage (api_key_id, day, requests)", days)...)
	s, err := b.startPortal(ctx, tenant)
	if err := errors.Join(fillErr, err); err != nil {
		return nil, err
	}
	loads, err := s.pageLoads(ctx, on, "/api-keys", "/api-keys")
	if err != nil {
		return nil, err
	}
	alone, loaded := loads[0], loads[1]
	loaded.rate = 20
	loaded.beside(&load{servers: []*server{s}, keys: tenant.keys, connections: busy})
	results, err := b.interleave(ctx, alone, loaded)
	if err != nil {
		return nil, err
	}
	b.target(name+", /api-keys under full load: p99 in ms", results[1].median(p99)/1e6, "≤", 25)
	return [][]string{
		loadRow(results[0], results[0], name, "alone"),
		loadRow(results[1], results[0], name, "full load of the API"),
	}, nil
}
