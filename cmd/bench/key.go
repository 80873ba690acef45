package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// oneKey compares the portal on both databases with a plain handler, and the endpoints for gateways
// with the token endpoint.
func (b *bench) oneKey(ctx context.Context) error {
	onPostgres, postgresErr := b.newTenant(ctx, b.cluster, "key", 2)
	onSQLite, sqliteErr := b.newTenant(ctx, nil, "key", 2)
	if err := errors.Join(postgresErr, sqliteErr); err != nil {
		return err
	}
	for _, t := range []*tenant{onPostgres, onSQLite} {
		if err := t.exec(ctx, fmt.Sprintf(`UPDATE api_keys SET expires_at = '2099-12-31 00:00:00+00:00', agents = '["%s"]',
			networks = '["127.0.0.0/8"]' WHERE id = '%s'`, t.keys[1].agentID, t.keys[1].id)); err != nil {
			return err
		}
	}
	plain, plainErr := b.startPlain(ctx, onSQLite.keys[0], "")
	dressed, dressedErr := b.startPlain(ctx, onSQLite.keys[0], withMiddleware)
	postgres, postgresErr := b.startPortal(ctx, onPostgres)
	sqlite, sqliteErr := b.startPortal(ctx, onSQLite)
	if err := errors.Join(plainErr, dressedErr, postgresErr, sqliteErr); err != nil {
		return err
	}
	token, err := postgres.token(ctx, onPostgres.keys[0])
	if err != nil {
		return err
	}
	byKey := getRequest("/api/authorize", "\r\nAuthorization: Bearer "+onPostgres.keys[0].secret)
	byToken := getRequest("/widget/authorize", "\r\nAuthorization: Bearer "+token)
	loads := []*load{
		{name: "plain Gin handler", servers: []*server{plain}, keys: onSQLite.keys[:1]},
		{name: "plain, with the portal's middleware", servers: []*server{dressed}, keys: onSQLite.keys[:1]},
		{name: "PostgreSQL", servers: []*server{postgres}, cluster: b.cluster, keys: onPostgres.keys[:1]},
		{name: "SQLite", servers: []*server{sqlite}, keys: onSQLite.keys[:1]},
		{name: "PostgreSQL, restricted", servers: []*server{postgres}, cluster: b.cluster, keys: onPostgres.keys[1:]},
		{name: "SQLite, restricted", servers: []*server{sqlite}, keys: onSQLite.keys[1:]},
		{name: "PostgreSQL, /api/authorize", servers: []*server{postgres}, cluster: b.cluster, fixed: byKey},
		{name: "PostgreSQL, /widget/authorize", servers: []*server{postgres}, cluster: b.cluster, fixed: byToken},
	}
	var rows [][]string
	for _, connections := range []int{1, busy} {
		some := loads[:4]
		if connections == busy {
			some = loads
		}
		for _, l := range some {
			l.connections = connections
		}
		results, err := b.interleave(ctx, some...)
		if err != nil {
			return err
		}
		for i, l := range some {
			r, plain := results[i], results[0]
			rows = append(rows, loadRow(r, plain, strconv.Itoa(connections), l.name))
			figure := fmt.Sprintf("%s at %d connections: ", l.name, busy)
			switch {
			case i < 2 || connections != busy:
			case l.fixed != nil:
				b.target(figure+"CPU server vs. token endpoint", r.ratio(results[2], serverCPU), "≤", 0.67)
			case i > 3:
				b.target(figure+"CPU server vs. without restrictions", r.ratio(results[i-2], serverCPU), "≤", 1.03)
			default:
				b.target(figure+"CPU server vs. plain", r.ratio(plain, serverCPU), "≤", 1)
				b.target(figure+"requests/s vs. plain", r.ratio(plain, perSecond), "≥", 0.9)
				b.target(figure+"p99 vs. plain", r.ratio(plain, p99), "≤", 1)
				b.target(figure+"p99 in ms", r.median(p99)/1e6, "≤", 10)
			}
		}
	}
	b.print("One key", "`POST /api/widget/token` with one key, and the endpoints for gateways. The plain Gin handler is\n"+
		"encoding/json, golang-jwt and Ed25519, without a store and without middleware. With the portal's middleware it also has\n"+
		"metrics, request ids, an access log and security headers. A restricted key has an expiry, an agent and a network.", "connections | | "+loadHeader("plain"), rows)
	return nil
}
