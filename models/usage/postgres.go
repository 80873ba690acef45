package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// postgresAdd adds a batch. A trigger moves the counts of a past hour to the tables of hours and
// days.
const postgresAdd = `INSERT INTO api_key_last_uses AS stored (api_key_id, used_at, hour, requests, refusals)
	SELECT used.api_key_id, used.used_at, $1, used.requests, used.refusals
	FROM unnest($2::uuid[], $3::timestamptz[], $4::bigint[], $5::bigint[]) AS used (api_key_id, used_at, requests, refusals)
	ON CONFLICT (api_key_id) DO UPDATE SET
		used_at = GREATEST(stored.used_at, excluded.used_at),
		requests = CASE WHEN stored.hour = excluded.hour THEN stored.requests ELSE 0 END + excluded.requests,
		refusals = CASE WHEN stored.hour = excluded.hour THEN stored.refusals ELSE 0 END + excluded.refusals,
		hour = excluded.hour`

// postgresAddSources adds a batch by source, in the transaction of postgresAdd, which has locked
// the rows of the keys. A trigger limits the sources of a key on a day.
const postgresAddSources = `INSERT INTO api_key_sources AS stored (api_key_id, day, address, client, requests, first_seen, last_seen)
	SELECT used.api_key_id, date_trunc('day', $1::timestamptz, 'UTC'), used.address, used.client, used.requests, used.first_seen, used.last_seen
	FROM unnest($2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[], $7::timestamptz[])
		AS used (api_key_id, address, client, requests, first_seen, last_seen)
	ON CONFLICT (api_key_id, day, address, client) DO UPDATE SET
		requests = stored.requests + excluded.requests,
		first_seen = LEAST(stored.first_seen, excluded.first_seen), last_seen = GREATEST(stored.last_seen, excluded.last_seen)`

// postgresSettings bound the wait for a row that another session holds. Without jit=off, PostgreSQL
// may compile the plan each time.
const postgresSettings = "SET lock_timeout = '500ms'; SET jit = off"

// Postgres is the [Writer] for PostgreSQL, with a connection of its own.
type Postgres struct {
	dial func(context.Context) (*pgx.Conn, error)
	stop func() error
	conn *pgx.Conn // nil until the first use and after an error
}

// NewPostgres returns a writer that calls dial when it needs a connection, and stop at the end.
func NewPostgres(dial func(context.Context) (*pgx.Conn, error), stop func() error) *Postgres {
	return &Postgres{dial: dial, stop: stop}
}

// Write implements [Writer].
func (p *Postgres) Write(ctx context.Context, hour time.Time, entries []Entry, sources []SourceEntry) error {
	arguments, bySource := postgresArguments(hour, entries), postgresSources(hour, sources)
	reused := p.conn != nil
	err := p.try(ctx, arguments, bySource)
	if err != nil && reused && ctx.Err() == nil {
		// The server may have closed the old connection, so try a new one.
		err = p.try(ctx, arguments, bySource)
	}
	return err
}

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
	return []any{hour, keys, lasts, requests, refusals}
}

func postgresSources(hour time.Time, entries []SourceEntry) []any {
	n := len(entries)
	keys, requests := make(pgtype.FlatArray[pgtype.UUID], n), make(pgtype.FlatArray[pgtype.Int8], n)
	addresses, clients := make(pgtype.FlatArray[string], n), make(pgtype.FlatArray[string], n)
	firsts, lasts := make(pgtype.FlatArray[pgtype.Timestamptz], n), make(pgtype.FlatArray[pgtype.Timestamptz], n)
	for i, entry := range entries {
		keys[i] = pgtype.UUID{Bytes: entry.Key, Valid: true}
		addresses[i], clients[i] = entry.Address(), entry.Client()
		requests[i] = pgtype.Int8{Int64: entry.Requests, Valid: true}
		firsts[i] = pgtype.Timestamptz{Time: entry.FirstUse(), Valid: true}
		lasts[i] = pgtype.Timestamptz{Time: entry.LastUse(), Valid: true}
	}
	return []any{hour, keys, addresses, clients, requests, firsts, lasts}
}

// try runs the statements in one transaction with an open connection, and drops the connection
// after an error.
func (p *Postgres) try(ctx context.Context, arguments, bySource []any) error {
	if p.conn == nil {
		if err := p.connect(ctx); err != nil {
			return err
		}
	}
	err := pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "add", arguments...)
		if err == nil {
			_, err = tx.Exec(ctx, "add sources", bySource...)
		}
		return err
	})
	if err != nil {
		p.drop()
	}
	return err
}

func (p *Postgres) connect(ctx context.Context) error {
	conn, err := p.dial(ctx)
	if err != nil {
		return err
	}
	p.conn = conn
	if _, err = conn.PgConn().Exec(ctx, postgresSettings).ReadAll(); err == nil {
		_, err = conn.Prepare(ctx, "add", postgresAdd)
	}
	if err == nil {
		_, err = conn.Prepare(ctx, "add sources", postgresAddSources)
	}
	if err != nil {
		p.drop()
		return fmt.Errorf("prepare the write of usage: %w", err)
	}
	return nil
}

// drop closes the connection without waiting for the server.
func (p *Postgres) drop() {
	_ = p.conn.PgConn().Conn().SetDeadline(time.Now())
	_ = p.conn.Close(context.Background())
	p.conn = nil
}

// Close implements [Writer].
func (p *Postgres) Close() error {
	if p.conn == nil {
		return p.stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := p.conn.Close(ctx)
	p.conn = nil
	return errors.Join(err, p.stop())
}
