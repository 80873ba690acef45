package usage

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// postgresKeep returns those of the keys that were not deleted, and lets nobody delete them until
// the transaction ends. It is the first statement, because other transactions too use the table
// api_keys before those of the usage.
const postgresKeep = `SELECT id FROM api_keys WHERE id = ANY($1::uuid[]) ORDER BY id FOR KEY SHARE`

// postgresAdd adds a batch. A trigger moves the counts of a past hour to the tables of hours and
// days. An entry may have sources only, whose counts are there already.
const postgresAdd = `INSERT INTO api_key_last_uses AS stored (api_key_id, used_at, hour, requests, refusals)
	SELECT used.api_key_id, used.used_at, $1, used.requests, used.refusals
	FROM unnest($2::uuid[], $3::timestamptz[], $4::bigint[], $5::bigint[]) AS used (api_key_id, used_at, requests, refusals)
	ON CONFLICT (api_key_id) DO UPDATE SET
		used_at = GREATEST(stored.used_at, excluded.used_at),
		requests = CASE WHEN stored.hour = excluded.hour OR excluded.requests + excluded.refusals = 0 THEN stored.requests ELSE 0 END + excluded.requests,
		refusals = CASE WHEN stored.hour = excluded.hour OR excluded.requests + excluded.refusals = 0 THEN stored.refusals ELSE 0 END + excluded.refusals,
		hour = CASE WHEN excluded.requests + excluded.refusals = 0 THEN stored.hour ELSE excluded.hour END`

// postgresAddSources adds a batch by source, in the transaction of postgresAdd, which has locked
// the rows of the keys. A trigger limits the sources of a key on a day.
const postgresAddSources = `INSERT INTO api_key_sources AS stored (api_key_id, day, address, client, requests, first_seen, last_seen)
	SELECT used.api_key_id, used.day, used.address, used.client, used.requests, used.first_seen, used.last_seen
	FROM unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[], $7::timestamptz[])
		AS used (api_key_id, day, address, client, requests, first_seen, last_seen)
	ON CONFLICT (api_key_id, day, address, client) DO UPDATE SET
		requests = stored.requests + excluded.requests,
		first_seen = LEAST(stored.first_seen, excluded.first_seen), last_seen = GREATEST(stored.last_seen, excluded.last_seen)`

// Postgres is the [Writer] for PostgreSQL.
type Postgres struct{ db *sql.DB }

// NewPostgres returns a writer that owns db, a pool of one connection: nothing else may use db, and
// Close closes it.
func NewPostgres(db *sql.DB) *Postgres { return &Postgres{db} }

// Write implements [Writer]. After an error, the next write connects again, because a primary that
// was demoted may keep its connections open.
func (p *Postgres) Write(ctx context.Context, hour time.Time, entries []Entry, sources []SourceEntry) error {
	err := p.write(ctx, hour, entries, sources)
	if err != nil {
		p.db.SetMaxIdleConns(0) // closes the connection
		p.db.SetMaxIdleConns(1)
	}
	return err
}

func (p *Postgres) write(ctx context.Context, hour time.Time, entries []Entry, sources []SourceEntry) error {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	kept, err := keepKeys(ctx, tx, entries)
	if err != nil {
		return err
	}
	if len(kept) < len(entries) {
		entries = slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return !kept[e.Key] })
		sources = slices.DeleteFunc(slices.Clone(sources), func(e SourceEntry) bool { return !kept[e.Key] })
	}
	if _, err := tx.ExecContext(ctx, postgresAdd, postgresArguments(hour, entries)...); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, postgresAddSources, postgresSources(sources)...); err != nil {
		return err
	}
	return tx.Commit()
}

// keepKeys returns the keys that postgresKeep has kept.
func keepKeys(ctx context.Context, tx *sql.Tx, entries []Entry) (kept map[uuid.UUID]bool, err error) {
	ids := make(pgtype.FlatArray[pgtype.UUID], len(entries))
	for i, entry := range entries {
		ids[i] = pgtype.UUID{Bytes: entry.Key, Valid: true}
	}
	rows, err := tx.QueryContext(ctx, postgresKeep, pgx.QueryExecModeCacheStatement, ids)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	kept = make(map[uuid.UUID]bool, len(entries))
	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		kept[id] = true
	}
	return kept, rows.Err()
}

// Close implements [Writer].
func (p *Postgres) Close() error { return p.db.Close() }

// postgresArguments returns the arguments of postgresAdd. The first one makes pgx prepare the
// statement once.
func postgresArguments(hour time.Time, entries []Entry) []any {
	n := len(entries)
	keys, lasts := make(pgtype.FlatArray[pgtype.UUID], n), make(pgtype.FlatArray[pgtype.Timestamptz], n)
	requests, refusals := make(pgtype.FlatArray[pgtype.Int8], n), make(pgtype.FlatArray[pgtype.Int8], n)
	for i, entry := range entries {
		keys[i] = pgtype.UUID{Bytes: entry.Key, Valid: true}
		lasts[i] = pgtype.Timestamptz{Time: entry.lastUse(), Valid: entry.Last != 0}
		requests[i] = pgtype.Int8{Int64: entry.Requests, Valid: true}
		refusals[i] = pgtype.Int8{Int64: entry.Refusals, Valid: true}
	}
	return []any{pgx.QueryExecModeCacheStatement, hour, keys, lasts, requests, refusals}
}

// postgresSources is postgresArguments for postgresAddSources.
func postgresSources(entries []SourceEntry) []any {
	n := len(entries)
	keys, requests := make(pgtype.FlatArray[pgtype.UUID], n), make(pgtype.FlatArray[pgtype.Int8], n)
	addresses, clients := make(pgtype.FlatArray[string], n), make(pgtype.FlatArray[string], n)
	days := make(pgtype.FlatArray[pgtype.Timestamptz], n)
	firsts, lasts := make(pgtype.FlatArray[pgtype.Timestamptz], n), make(pgtype.FlatArray[pgtype.Timestamptz], n)
	for i, entry := range entries {
		keys[i] = pgtype.UUID{Bytes: entry.Key, Valid: true}
		days[i] = pgtype.Timestamptz{Time: entry.Day(), Valid: true}
		addresses[i], clients[i] = entry.Address(), entry.Client()
		requests[i] = pgtype.Int8{Int64: entry.Requests, Valid: true}
		firsts[i] = pgtype.Timestamptz{Time: entry.FirstUse(), Valid: true}
		lasts[i] = pgtype.Timestamptz{Time: entry.LastUse(), Valid: true}
	}
	return []any{pgx.QueryExecModeCacheStatement, keys, days, addresses, clients, requests, firsts, lasts}
}
