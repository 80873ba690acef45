package models

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/migrate"

	"portal/migrations"
)

// migrationLock is the key of the advisory lock that lets one instance at a time migrate a
// PostgreSQL database. The value is arbitrary.
const migrationLock = 0x6e61735f // "nas_"

// sqliteMigrationTimeout is how long a migration is retried while other processes lock the file.
const sqliteMigrationTimeout = 5 * time.Second

// errAppliedMeanwhile rolls back a migration that another process has applied in the meantime.
var errAppliedMeanwhile = errors.New("applied by another process in the meantime")

// migrateSchema brings the schema up to date. It may run in several processes at once and after a
// crash at any point: each migration is marked as applied in its own transaction.
func migrateSchema(ctx context.Context, db *bun.DB) error {
	// SQLite does not wait for a lock while several processes create one file, nor if another has
	// written since this one began to read (sqlite.org/wal.html, section 8).
	for deadline := time.Now().Add(sqliteMigrationTimeout); ; {
		err := tryMigrateSchema(ctx, db)
		if !sqliteBusy(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func tryMigrateSchema(ctx context.Context, db *bun.DB) error {
	files := migrations.SQLite()
	if db.Dialect().Name() == dialect.PG {
		files = migrations.Postgres()
		// The lock belongs to the connection, so it is released if the process dies.
		conn, err := db.Conn(ctx)
		if err != nil {
			return failed("connect", err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(?)", migrationLock); err != nil {
			return failed("wait for another instance's migration", err)
		}
		defer func() {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock(?)", migrationLock)
		}()
	}
	migrator, err := newMigrator(db, files)
	if err != nil {
		return err
	}
	if err := migrator.Init(ctx); err != nil {
		return failed("create the table of migrations", err)
	}
	for {
		_, err := migrator.Migrate(ctx)
		if !errors.Is(err, errAppliedMeanwhile) {
			return failed("migrate", err)
		}
	}
}

func newMigrator(db *bun.DB, files fs.FS) (*migrate.Migrator, error) {
	found := migrate.NewMigrations()
	if err := found.Discover(files); err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return migrate.NewMigrator(db, found,
		// Bun marks a migration after its commit. The hook below does so in the transaction, and
		// Bun's own mark then repeats it.
		migrate.WithMarkAppliedOnSuccess(true),
		migrate.WithUpsert(true),
		migrate.BeforeMigration(func(ctx context.Context, tx bun.IConn, m *migrate.Migration) error {
			var applied int
			err := tx.QueryRowContext(ctx, "SELECT count(*) FROM bun_migrations WHERE name = ?", m.Name).Scan(&applied)
			if err == nil && applied > 0 {
				err = errAppliedMeanwhile
			}
			return err
		}),
		migrate.AfterMigration(func(ctx context.Context, tx bun.IConn, m *migrate.Migration) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO bun_migrations (name, group_id) VALUES (?, ?)", m.Name, m.GroupID)
			return err
		}),
	), nil
}
