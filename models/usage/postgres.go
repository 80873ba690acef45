package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// postgresAdd adds a piece unless it or a later one is stored. A trigger moves the counts of a past
// hour to the tables of hours and days.
const postgresAdd = `WITH flush AS (
		INSERT INTO usage_flushes AS stored (recorder_id, piece, written_at) VALUES ($1, $2, now())
		ON CONFLICT (recorder_id) DO UPDATE SET piece = excluded.piece, written_at = excluded.written_at
		WHERE stored.piece < excluded.piece
		RETURNING recorder_id
	)
	INSERT INTO api_key_last_uses AS stored (api_key_id, used_at, hour, requests, refusals)
	SELECT used.api_key_id, used.used_at, $3, used.requests, used.refusals
	FROM flush CROSS JOIN unnest($4::uuid[], $5::timestamptz[], $6::bigint[], $7::bigint[]) AS used (api_key_id, used_at, requests, refusals)
	ON CONFLICT (api_key_id) DO UPDATE SET
		used_at = GREATEST(stored.used_at, excluded.used_at),
		requests = CASE WHEN stored.hour = excluded.hour THEN stored.requests ELSE 0 END + excluded.requests,
		refusals = CASE WHEN stored.hour = excluded.hour THEN stored.refusals ELSE 0 END + excluded.refusals,
		hour = excluded.hour`

// postgresLocked returns the keys whose rows another session holds.
const postgresLocked = `WITH free AS (
		SELECT api_key_id FROM api_key_last_uses WHERE api_key_id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED
	)
	SELECT api_key_id FROM api_key_last_uses WHERE api_key_id = ANY ($1) AND api_key_id NOT IN (SELECT api_key_id FROM free)`

// postgresSettings bound the wait for a row that another session holds. Without jit=off, PostgreSQL
// may compile the plan each time.
const postgresSettings = "SET lock_timeout = '500ms'; SET jit = off"

// Postgres is the [Writer] for PostgreSQL. It has a connection of its own.
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
func (p *Postgres) Write(ctx context.Context, piece Piece) error {
	arguments := postgresArguments(piece)
	reused := p.conn != nil
	err := p.try(ctx, arguments)
	if err == nil || p.conn != nil || !reused || ctx.Err() != nil {
		return err
	}
	// The server may have closed the old connection, so try a new one.
	err = p.try(ctx, arguments)
	if locked, ok := errors.AsType[*LockedError](err); ok {
		// The first attempt may hold the locks, and may still succeed. So the outcome is
		// unknown.
		err = locked.Err
	}
	return err
}

// postgresArguments returns the arguments of postgresAdd.
func postgresArguments(piece Piece) []any {
	n := len(piece.Entries)
	keys, lasts := make(pgtype.FlatArray[pgtype.UUID], 0, n), make(pgtype.FlatArray[pgtype.Timestamptz], 0, n)
	requests, refusals := make(pgtype.FlatArray[pgtype.Int8], 0, n), make(pgtype.FlatArray[pgtype.Int8], 0, n)
	for _, entry := range piece.Entries {
		if entry.counts == (counts{}) {
			continue
		}
		keys = append(keys, pgtype.UUID{Bytes: entry.Key, Valid: true})
		lasts = append(lasts, pgtype.Timestamptz{Time: entry.lastUse(), Valid: entry.Last != 0})
		requests = append(requests, pgtype.Int8{Int64: entry.Requests, Valid: true})
		refusals = append(refusals, pgtype.Int8{Int64: entry.Refusals, Valid: true})
	}
	return []any{pgtype.UUID{Bytes: piece.Recorder, Valid: true}, piece.Number, piece.Hour, keys, lasts, requests, refusals}
}

// try runs the statement with an open connection. It drops the connection after an error, unless
// the error is a [*LockedError].
func (p *Postgres) try(ctx context.Context, arguments []any) error {
	if p.conn == nil {
		if err := p.connect(ctx); err != nil {
			return err
		}
	}
	_, err := p.conn.Exec(ctx, "add", arguments...)
	if err == nil {
		return nil
	}
	if notWritten(err) {
		keys, lockedErr := p.locked(ctx, arguments[3])
		if lockedErr == nil {
			return &LockedError{Keys: keys, Err: err}
		}
		err = errors.Join(err, lockedErr)
	}
	p.drop()
	return err
}

// notWritten reports whether the server rolled the statement back because of other sessions' locks.
func notWritten(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "55P03" || pgErr.Code == "40P01") // lock_not_available, deadlock_detected
}

// locked returns the keys whose rows another session holds.
func (p *Postgres) locked(ctx context.Context, keys any) ([]uuid.UUID, error) {
	rows, err := p.conn.Query(ctx, "locked", keys)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (key uuid.UUID, err error) {
		err = row.Scan(&key)
		return key, err
	})
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
		_, err = conn.Prepare(ctx, "locked", postgresLocked)
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
