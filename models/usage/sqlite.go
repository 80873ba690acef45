package usage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const (
	// sqliteFlush stores the number of a piece unless it or a later one is stored.
	sqliteFlush = `INSERT INTO usage_flushes AS stored (recorder_id, piece, written_at) VALUES (?, ?, ?)
		ON CONFLICT (recorder_id) DO UPDATE SET piece = excluded.piece, written_at = excluded.written_at
		WHERE stored.piece < excluded.piece`

	// sqliteAdd adds the usage of one key. A trigger moves the counts of a past hour to the
	// tables of hours and days.
	sqliteAdd = `INSERT INTO api_key_last_uses AS stored (api_key_id, used_at, hour, requests, refusals) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (api_key_id) DO UPDATE SET
			used_at = COALESCE(max(stored.used_at, excluded.used_at), stored.used_at, excluded.used_at),
			requests = CASE WHEN stored.hour = excluded.hour THEN stored.requests ELSE 0 END + excluded.requests,
			refusals = CASE WHEN stored.hour = excluded.hour THEN stored.refusals ELSE 0 END + excluded.refusals,
			hour = excluded.hour`
)

// sqliteTime is the format in which Bun stores times. Its text sorts by time.
const sqliteTime = "2006-01-02 15:04:05.999999-07:00"

// SQLite is the [Writer] for SQLite.
type SQLite struct {
	db         *sql.DB
	flush, add *sql.Stmt
}

// NewSQLite returns a writer that owns db: nothing else may use db, and Close closes it.
func NewSQLite(ctx context.Context, db *sql.DB) (*SQLite, error) {
	flush, flushErr := db.PrepareContext(ctx, sqliteFlush)
	add, addErr := db.PrepareContext(ctx, sqliteAdd)
	if err := errors.Join(flushErr, addErr); err != nil {
		return nil, fmt.Errorf("prepare the write of usage: %w", errors.Join(err, db.Close()))
	}
	return &SQLite{db: db, flush: flush, add: add}, nil
}

// Write implements [Writer].
func (s *SQLite) Write(ctx context.Context, piece Piece) error {
	err := s.write(ctx, piece)
	if err != nil && ctx.Err() != nil {
		// The driver's error does not say that the deadline is the cause.
		err = errors.Join(ctx.Err(), err)
	}
	return err
}

func (s *SQLite) write(ctx context.Context, piece Piece) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	now := time.Now().UTC().Format(sqliteTime)
	result, err := tx.StmtContext(ctx, s.flush).ExecContext(ctx, piece.Recorder.String(), piece.Number, now)
	if err != nil {
		return err
	}
	if stored, err := result.RowsAffected(); err != nil || stored == 0 {
		return err
	}
	if err := s.addEntries(ctx, tx, piece); err != nil {
		return err
	}
	return tx.Commit()
}

func (s *SQLite) addEntries(ctx context.Context, tx *sql.Tx, piece Piece) error {
	add, hour := tx.StmtContext(ctx, s.add), piece.Hour.UTC().Format(sqliteTime)
	// The driver starts a goroutine for each call whose context can end. The transaction ends
	// with ctx anyway.
	endless := context.WithoutCancel(ctx)
	for _, entry := range piece.Entries {
		if entry.counts == (counts{}) {
			continue
		}
		var last sql.NullString
		if entry.Last != 0 {
			last = sql.NullString{String: entry.lastUse().Format(sqliteTime), Valid: true}
		}
		if _, err := add.ExecContext(endless, entry.Key.String(), last, hour, entry.Requests, entry.Refusals); err != nil {
			return err
		}
	}
	return nil
}

// Close implements [Writer].
func (s *SQLite) Close() error {
	return errors.Join(s.flush.Close(), s.add.Close(), s.db.Close())
}
