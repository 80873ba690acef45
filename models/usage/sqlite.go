package usage

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"
)

// sqliteAdd adds the usage of one key, unless the key was deleted. A trigger moves the counts of a
// past hour to the tables of hours and days. An entry may have sources only, whose counts are there
// already.
const sqliteAdd = `INSERT INTO api_key_last_uses AS stored (api_key_id, used_at, hour, requests, refusals)
		SELECT id, ?, ?, ?, ? FROM api_keys WHERE id = ?
		ON CONFLICT (api_key_id) DO UPDATE SET
			used_at = COALESCE(max(stored.used_at, excluded.used_at), stored.used_at, excluded.used_at),
			requests = CASE WHEN stored.hour = excluded.hour OR excluded.requests + excluded.refusals = 0 THEN stored.requests ELSE 0 END + excluded.requests,
			refusals = CASE WHEN stored.hour = excluded.hour OR excluded.requests + excluded.refusals = 0 THEN stored.refusals ELSE 0 END + excluded.refusals,
			hour = CASE WHEN excluded.requests + excluded.refusals = 0 THEN stored.hour ELSE excluded.hour END`

// sqliteAddSource adds the requests with one key from one source on a day. A trigger limits the
// sources of a key on a day.
const sqliteAddSource = `INSERT INTO api_key_sources AS stored (api_key_id, day, address, client, requests, first_seen, last_seen)
		VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (api_key_id, day, address, client) DO UPDATE SET requests = stored.requests + excluded.requests,
			first_seen = min(stored.first_seen, excluded.first_seen), last_seen = max(stored.last_seen, excluded.last_seen)`

// sqliteTime is the format in which Bun stores times. Its text sorts by time.
const sqliteTime = "2006-01-02 15:04:05.999999-07:00"

// SQLite is the [Writer] for SQLite.
type SQLite struct{ db *sql.DB }

// NewSQLite returns a writer that owns db, a pool of one connection: nothing else may use db, and
// Close closes it.
func NewSQLite(db *sql.DB) *SQLite { return &SQLite{db} }

// Write implements [Writer].
func (s *SQLite) Write(ctx context.Context, hour time.Time, entries []Entry, sources []SourceEntry) error {
	err := s.write(ctx, hour, entries, sources)
	if err != nil && ctx.Err() != nil {
		// The driver's error does not say that the deadline is the cause.
		err = errors.Join(ctx.Err(), err)
	}
	return err
}

func (s *SQLite) write(ctx context.Context, hour time.Time, entries []Entry, sources []SourceEntry) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	add, err := tx.PrepareContext(ctx, sqliteAdd)
	if err != nil {
		return err
	}
	addSource, err := tx.PrepareContext(ctx, sqliteAddSource)
	if err != nil {
		return err
	}
	// The driver starts a goroutine for each call whose context can end, although the
	// transaction ends with ctx anyway.
	endless := context.WithoutCancel(ctx)
	start := hour.Format(sqliteTime)
	deleted := map[uuid.UUID]bool{}
	for _, entry := range entries {
		var last sql.NullString
		if entry.Last != 0 {
			last = sql.NullString{String: entry.lastUse().Format(sqliteTime), Valid: true}
		}
		added, err := add.ExecContext(endless, last, start, entry.Requests, entry.Refusals, entry.Key.String())
		if err != nil {
			return err
		}
		if rows, _ := added.RowsAffected(); rows == 0 { // the driver has no error
			deleted[entry.Key] = true
		}
	}
	for _, entry := range sources {
		if deleted[entry.Key] {
			continue
		}
		if _, err := addSource.ExecContext(endless, entry.Key.String(), entry.Day().Format(sqliteTime), entry.Address(), entry.Client(), entry.Requests,
			entry.FirstUse().Format(sqliteTime), entry.LastUse().Format(sqliteTime)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Close implements [Writer].
func (s *SQLite) Close() error { return s.db.Close() }
