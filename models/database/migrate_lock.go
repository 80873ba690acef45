package database

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// MigrationLock is the arbitrary key of the advisory lock that lets one instance at a time migrate
// a PostgreSQL database.
const MigrationLock = 0x6e61735f // "nas_"

// holder describes the session that the migration probably waits for: the holder of the advisory
// lock or else of the oldest transaction.
func (m migration) holder(ctx context.Context) string {
	if !m.isPostgres() {
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

// lockedOut reports whether a migration failed because another session held a lock.
func lockedOut(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return IsSQLiteBusy(err) || ok && (refused.Code == "55P03" || refused.Code == "40P01")
}
