package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/migrate"

	"portal/migrations"
)

// The waits of a migration for locks.
const (
	// The usual total waits. With SQLite, the other processes use the same file.
	postgresMigrationWait = 30 * time.Second
	sqliteMigrationWait   = 5 * time.Second
	// tableLockTimeout is how long an attempt of a migration waits for a table. Meanwhile,
	// every later statement on that table, including a revocation, queues behind the attempt.
	tableLockTimeout = 300 * time.Millisecond
	// maxTableLockPause is the longest pause between two attempts.
	maxTableLockPause = 3 * time.Second
)

// errAppliedMeanwhile rolls back a migration that another process has applied in the meantime.
var errAppliedMeanwhile = errors.New("applied by another process in the meantime")

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

// run brings the schema up to date. It may run in several processes at once and after a crash at
// any point: each migration is marked as applied in its own transaction. It takes no lock if the
// schema is up to date.
func (m migration) run(ctx context.Context) error {
	postgres := m.db.Dialect().Name() == dialect.PG
	deadline := time.Now().Add(m.wait)
	for pause := tableLockTimeout; ; pause = min(2*pause, maxTableLockPause) {
		err := m.attempt(ctx, deadline)
		if !lockedOut(err) {
			return err
		}
		if postgres {
			m.logger.WarnContext(ctx, "the migration waits for a table", slog.String("held_by", m.holder(ctx)), slog.Any("error", err))
		} else {
			// SQLite does not wait for a lock while several processes create one file,
			// nor if another process has written since this one began to read
			// (sqlite.org/wal.html, section 8).
			pause = 10 * time.Millisecond
		}
		if !sleepUntil(ctx, pause, deadline) {
			return errors.Join(m.waited(ctx, "a table"), err)
		}
	}
}

// attempt applies the pending migrations, if there are any.
func (m migration) attempt(ctx context.Context, deadline time.Time) error {
	limited, cancel := context.WithDeadline(ctx, deadline.Add(Timeout))
	defer cancel()
	if pending, err := m.pending(limited); err != nil || !pending {
		return err
	}
	if m.db.Dialect().Name() == dialect.PG {
		unlock, err := m.lock(limited, deadline)
		if err != nil {
			return err
		}
		defer unlock()
	}
	migrator, err := m.migrator()
	if err != nil {
		return err
	}
	if err := migrator.Init(ctx); err != nil {
		return Failed("create the table of migrations", err)
	}
	for {
		_, err := migrator.Migrate(ctx)
		if errors.Is(err, errAppliedMeanwhile) {
			continue
		}
		if err != nil {
			return Failed("migrate", err)
		}
		return nil
	}
}

// pending reports whether a migration has not been applied.
func (m migration) pending(ctx context.Context) (bool, error) {
	query := "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'bun_migrations'"
	if m.db.Dialect().Name() == dialect.PG {
		query = "SELECT count(*) FROM pg_class WHERE oid = to_regclass('bun_migrations')"
	}
	var tables int
	if err := m.db.NewRaw(query).Scan(ctx, &tables); err != nil {
		return false, Failed("open the database", err)
	}
	if tables == 0 {
		return true, nil
	}
	var applied []string
	if err := m.db.NewRaw("SELECT name FROM bun_migrations").Scan(ctx, &applied); err != nil {
		return false, Failed("list the applied migrations", err)
	}
	found, err := m.discover()
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(found.Sorted(), func(one migrate.Migration) bool { return !slices.Contains(applied, one.Name) }), nil
}

func (m migration) discover() (*migrate.Migrations, error) {
	found := migrate.NewMigrations()
	if err := found.Discover(m.files); err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return found, nil
}

func (m migration) migrator() (*migrate.Migrator, error) {
	found, err := m.discover()
	if err != nil {
		return nil, err
	}
	return migrate.NewMigrator(m.db, found,
		// Bun marks a migration as applied after its commit. The hook below does so in the
		// transaction. Bun then repeats the mark.
		migrate.WithMarkAppliedOnSuccess(true),
		migrate.WithUpsert(true),
		migrate.BeforeMigration(m.begin),
		migrate.AfterMigration(func(ctx context.Context, tx bun.IConn, one *migrate.Migration) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO bun_migrations (name, group_id) VALUES (?, ?)", one.Name, one.GroupID)
			return err
		}),
	), nil
}

// begin is called at the start of each migration's transaction. It returns [errAppliedMeanwhile] if
// the migration has been applied.
func (m migration) begin(ctx context.Context, tx bun.IConn, one *migrate.Migration) error {
	if m.db.Dialect().Name() == dialect.PG {
		// The usual limits would stop a long migration.
		_, err := tx.ExecContext(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d; SET LOCAL statement_timeout = 0",
			tableLockTimeout.Milliseconds()))
		if err != nil {
			return err
		}
	}
	var applied int
	err := tx.QueryRowContext(ctx, "SELECT count(*) FROM bun_migrations WHERE name = ?", one.Name).Scan(&applied)
	if err == nil && applied > 0 {
		err = errAppliedMeanwhile
	}
	return err
}
