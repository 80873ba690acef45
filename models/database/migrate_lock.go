package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/uptrace/bun/dialect"
)

const (
	// MigrationLock is the arbitrary key of the advisory lock that lets one instance at a time
	// migrate a PostgreSQL database.
	MigrationLock = 0x6e61735f // "nas_"
	// migrationLockInterval is the time between two attempts to take the lock.
	migrationLockInterval = 100 * time.Millisecond
)

// lock takes the advisory lock until unlock, in a transaction that stays open, so that the lock is
// released if the process dies.
func (m migration) lock(ctx context.Context, deadline time.Time) (unlock func(), err error) {
	conn, err := m.db.Conn(ctx)
	if err != nil {
		return nil, Failed("connect", err)
	}
	unlock = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), Timeout)
		defer cancel()
		_, _ = conn.ExecContext(ctx, "ROLLBACK")
		_ = conn.Close()
	}
	// The usual limit of an idle transaction would release the lock during a long migration.
	if _, err := conn.ExecContext(ctx, "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
		unlock()
		return nil, Failed("lock the migrations", err)
	}
	const awaited = "the migration of another instance"
	for logged := false; ; logged = true {
		var taken bool
		if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_xact_lock(?)", MigrationLock).Scan(&taken); err != nil {
			unlock()
			return nil, Failed("lock the migrations", err)
		}
		if taken {
			return unlock, nil
		}
		if !logged {
			m.logger.WarnContext(ctx, "waiting for "+awaited, slog.String("held_by", m.holder(ctx)))
		}
		if !sleepUntil(ctx, migrationLockInterval, deadline) {
			unlock()
			return nil, m.waited(ctx, awaited)
		}
	}
}

// waited returns the error after an unsuccessful wait for the lock named awaited.
func (m migration) waited(ctx context.Context, awaited string) error {
	if err := ctx.Err(); err != nil {
		return Failed("migrate", err)
	}
	return fmt.Errorf("%w: the schema cannot be updated now: waited %s for %s, held by %s", ErrUnavailable, m.wait, awaited, m.holder(ctx))
}

// holder describes the session that the migration probably waits for: the holder of the advisory
// lock or else of the oldest transaction.
func (m migration) holder(ctx context.Context) string {
	if m.db.Dialect().Name() != dialect.PG {
		return "another process"
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	var pid int
	var name string
	var since time.Time
	err := m.db.QueryRowContext(ctx, `SELECT s.pid, s.application_name, COALESCE(s.xact_start, s.backend_start)
		FROM pg_stat_activity AS s
		LEFT JOIN pg_locks AS l ON l.pid = s.pid AND l.locktype = 'advisory' AND l.granted AND l.objid = ?
		WHERE s.datname = current_database() AND s.pid <> pg_backend_pid()
			AND (l.pid IS NOT NULL OR s.xact_start IS NOT NULL)
		ORDER BY l.pid IS NULL, s.xact_start LIMIT 1`, MigrationLock).Scan(&pid, &name, &since)
	if err != nil {
		return "an unknown session"
	}
	return fmt.Sprintf("process %d (application %q, since %s)", pid, name, since.UTC().Format(time.RFC3339))
}

// sleepUntil sleeps, and reports false if the deadline has passed or ctx ends.
func sleepUntil(ctx context.Context, pause time.Duration, deadline time.Time) bool {
	if time.Now().After(deadline) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// lockedOut reports whether a migration failed because another session held a lock.
func lockedOut(err error) bool {
	if IsSQLiteBusy(err) {
		return true
	}
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "55P03" || pgErr.Code == "40P01")
}
