package database

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"portal/migrations"
)

// The waits of a migration for locks.
const (
	// The usual total waits. With SQLite, the other processes use the same file.
	postgresMigrationWait = 30 * time.Second
	sqliteMigrationWait   = 5 * time.Second
	// migrationLockTimeout is how long an attempt of a migration waits for a lock. Meanwhile,
	// every later statement on the table, including a revocation, queues behind the attempt.
	migrationLockTimeout = 300 * time.Millisecond
	// maxMigrationPause is the longest pause between two attempts.
	maxMigrationPause = 3 * time.Second
)

// Migrate brings the schema up to date, and refuses a pooler in transaction mode. It waits for the
// locks of other sessions for up to wait, or for the usual time if wait is 0, and logs what it
// waits for.
func (c *Connections) Migrate(ctx context.Context, logger *slog.Logger, wait time.Duration) error {
	m := migration{db: c.Portal, files: migrations.SQLite(), logger: logger, wait: cmp.Or(wait, sqliteMigrationWait)}
	if c.IsPostgres() {
		if err := c.checkSessions(ctx); err != nil {
			return err
		}
		m.files, m.wait = migrations.Postgres(), cmp.Or(wait, postgresMigrationWait)
	}
	return m.run(ctx)
}

// migration updates the schema of one database.
type migration struct {
	db     *bun.DB
	files  fs.FS // the migrations
	logger *slog.Logger
	wait   time.Duration // for the locks of other sessions, in total
}

// run brings the schema up to date, and takes no lock if nothing is missing. Because each migration
// is marked as applied in its own transaction, run may be called in several processes at once and
// after a crash at any point.
func (m migration) run(ctx context.Context) error {
	deadline := time.Now().Add(m.wait)
	for pause := migrationLockTimeout; ; pause = min(2*pause, maxMigrationPause) {
		err := m.attempt(ctx, deadline)
		if !lockedOut(err) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the schema cannot be updated now: waited %s for a lock, held by %s: %w", m.wait, m.holder(ctx), err)
		}
		if m.isPostgres() {
			m.logger.WarnContext(ctx, "the migration waits for a lock", slog.String("held_by", m.holder(ctx)), slog.Any("error", err))
		} else {
			// SQLite does not wait for a lock while several processes create one file,
			// nor if another process has written since this one began to read
			// (sqlite.org/wal.html, section 8).
			pause = 10 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return Failed("migrate", ctx.Err())
		case <-time.After(pause):
		}
	}
}

func (m migration) isPostgres() bool { return m.db.Dialect().Name() == dialect.PG }

func (m migration) attempt(ctx context.Context, deadline time.Time) error {
	limited, cancel := context.WithDeadline(ctx, deadline.Add(Timeout))
	defer cancel()
	pending, err := m.pending(limited)
	if err != nil {
		return err
	}
	for _, file := range pending {
		if err := m.apply(ctx, file); err != nil {
			return Failed("migrate", err)
		}
	}
	return nil
}

// pending returns the files of the migrations that have not been applied, in their order.
func (m migration) pending(ctx context.Context) ([]string, error) {
	files, err := fs.Glob(m.files, "*.sql")
	if err != nil {
		return nil, err
	}
	applied, err := applied(ctx, m.db)
	if err == nil && slices.ContainsFunc(applied, func(file string) bool { return !slices.Contains(files, file) }) {
		m.logger.WarnContext(ctx, "the schema is of a newer portal than this one; install the newer one here too", slog.String("version", versionOf(applied)))
	}
	return slices.DeleteFunc(files, func(file string) bool { return slices.Contains(applied, file) }), err
}

// errForeign is the error of a database that cannot get the portal's tables.
var errForeign = errors.New("the database has a table accounts that is not the portal's: set DATABASE_URL to a database of the portal's own")

var errOldSchema = errors.New("the database has the schema of a version before the first release")

// applied returns the files of the applied migrations, in their order. If they lack the first one
// of all, the database is older than the schema, and applied returns an error.
func applied(ctx context.Context, db *bun.DB) (files []string, err error) {
	query := "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
	if db.Dialect().Name() == dialect.PG {
		query = "SELECT count(*) FROM pg_class WHERE oid = to_regclass(?)"
	}
	// In this order: a migration by another process creates both at once.
	var others, tables int
	err = db.NewRaw(query, "accounts").Scan(ctx, &others)
	if err == nil {
		err = db.NewRaw(query, "applied_migrations").Scan(ctx, &tables)
	}
	if err != nil {
		return nil, failedToOpen(err)
	}
	if others > 0 && tables == 0 {
		return nil, errForeign
	}
	if tables > 0 {
		err = db.NewRaw("SELECT file FROM applied_migrations ORDER BY file").Scan(ctx, &files)
	}
	if err != nil {
		return nil, Failed("list the applied migrations", err)
	}
	known, err := fs.Glob(migrations.SQLite(), "*.sql") // PostgreSQL has the same names
	if len(files) > 0 && len(known) > 0 && !slices.Contains(files, known[0]) {
		err = fmt.Errorf("%w (%s), which cannot be updated: set DATABASE_URL to a new database", errOldSchema, files[len(files)-1])
	}
	return files, err
}

// Version returns the number of the last migration that a database has, or "" if it has no tables
// of the portal, and changes nothing.
func Version(ctx context.Context, databaseURL string) (string, error) {
	db, err := openUnchanged(databaseURL)
	if err != nil {
		return "", err
	}
	files, err := applied(ctx, db)
	if path, sqlite := SQLitePath(databaseURL); sqlite && !errors.Is(err, errOldSchema) && !errors.Is(err, errForeign) {
		err = explainSQLite(path, err)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return "", err
	}
	return versionOf(files), nil
}

// versionOf returns the number of the last of these migrations, or "" without one.
func versionOf(files []string) string {
	if len(files) == 0 {
		return ""
	}
	version, _, _ := strings.Cut(files[len(files)-1], "_")
	return version
}

// openUnchanged opens a database. Unlike [Open], it does not create a SQLite file or change its
// journal mode, because the file may be of another program.
func openUnchanged(databaseURL string) (*bun.DB, error) {
	if path, ok := SQLitePath(databaseURL); ok {
		if _, err := os.Stat(path); err != nil {
			return nil, explainSQLite(path, err)
		}
		connector, err := sqliteConnector(path, Timeout-busyMargin)
		return bun.NewDB(sql.OpenDB(connector), sqlitedialect.New()), err
	}
	connections, err := Open(databaseURL, Timeout)
	if err != nil {
		return nil, err
	}
	return connections.Portal, connections.API.Close()
}

// apply applies a migration in a transaction, unless another process has applied it meanwhile.
func (m migration) apply(ctx context.Context, file string) error {
	statements, err := fs.ReadFile(m.files, file)
	if err != nil {
		return err
	}
	return m.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		before := "CREATE TABLE IF NOT EXISTS applied_migrations (file varchar(255) PRIMARY KEY)"
		if m.isPostgres() {
			// The usual limit would stop a long migration.
			before = fmt.Sprintf("SET LOCAL lock_timeout = %d; SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock(%d); ",
				migrationLockTimeout.Milliseconds(), MigrationLock) + before
		}
		if _, err := tx.ExecContext(ctx, before); err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, "INSERT INTO applied_migrations (file) VALUES (?) ON CONFLICT DO NOTHING", file)
		if err != nil {
			return err
		}
		if inserted, err := result.RowsAffected(); err != nil || inserted == 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, string(statements))
		return err
	})
}

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
