package usage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// sqliteAdd adds the usage of one key. A trigger moves the counts of a past hour to the tables of
// hours and days.
const sqliteAdd = `INSERT INTO api_key_last_uses AS stored (api_key_id, used_at, hour, requests, refusals) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (api_key_id) DO UPDATE SET
			used_at = COALESCE(max(stored.used_at, excluded.used_at), stored.used_at, excluded.used_at),
			requests = CASE WHEN stored.hour = excluded.hour THEN stored.requests ELSE 0 END + excluded.requests,
			refusals = CASE WHEN stored.hour = excluded.hour THEN stored.refusals ELSE 0 END + excluded.refusals,
			hour = excluded.hour`

// sqliteTime is the format in which Bun stores times. Its text sorts by time.
const sqliteTime = "2006-01-02 15:04:05.999999-07:00"

// SQLite is the [Writer] for SQLite.
type SQLite struct {
	db  *sql.DB
	add *sql.Stmt
}

// NewSQLite returns a writer that owns db: nothing else may use db, and Close closes it.
func NewSQLite(ctx context.Context, db *sql.DB) (*SQLite, error) {
	add, err := db.PrepareContext(ctx, sqliteAdd)
	if err != nil {
		return nil, fmt.Errorf("prepare the write of usage: %w", errors.Join(err, db.Close()))
	}
	return &SQLite{db: db, add: add}, nil
}

// Write implements [Writer].
func (s *SQLite) Write(ctx context.Context, hour time.Time, entries []Entry) error {
	err := s.write(ctx, hour.Format(sqliteTime), entries)
	if err != nil && ctx.Err() != nil {
		// The driver's error does not say that the deadline is the cause.
		err = errors.Join(ctx.Err(), err)
	}
	return err
}

func (s *SQLite) write(ctx context.Context, hour string, entries []Entry) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	add := tx.StmtContext(ctx, s.add)
	// The driver starts a goroutine for each call whose context can end, although the
	// transaction ends with ctx anyway.
	endless := context.WithoutCancel(ctx)
	for _, entry := range entries {
		var last sql.NullString
		if entry.Last != 0 {
			last = sql.NullString{String: entry.lastUse().Format(sqliteTime), Valid: true}
		}
		if _, err := add.ExecContext(endless, entry.Key.String(), last, hour, entry.Requests, entry.Refusals); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Close implements [Writer].
func (s *SQLite) Close() error { return errors.Join(s.add.Close(), s.db.Close()) }
