package database_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/uptrace/bun"

	"portal/migrations"
	"portal/models/database"
	"portal/models/modelstest"
)

func (f *fixture) migrations() fs.FS {
	if f.IsPostgres() {
		return migrations.Postgres()
	}
	return migrations.SQLite()
}

// works checks that the schema is complete and was applied once.
func (f *fixture) works(t *testing.T) {
	t.Helper()
	must(t, f.Migrate(t.Context(), noLog, 0))
	must(t, f.customer(t).revokesAKey(t.Context()))
	files := modelstest.Value(fs.Glob(f.migrations(), "*.sql"))(t)
	if n := value[int](t, f, "SELECT count(*) FROM applied_migrations"); n != len(files) {
		t.Errorf("%d migrations are marked as applied, want %d", n, len(files))
	}
	if n := value[int](t, f, "SELECT count(*) FROM auth_epoch"); n != 1 {
		t.Errorf("%d epochs", n)
	}
}

func TestReopeningChangesNothing(t *testing.T) {
	eachEmptyDatabase(t, func(t *testing.T, f *fixture) {
		f.works(t)
		epoch := value[string](t, f, "SELECT value FROM auth_epoch")
		must(t, open(t, f.url).Migrate(t.Context(), noLog, 0))
		if value[string](t, f, "SELECT value FROM auth_epoch") != epoch || value[int](t, f, "SELECT count(*) FROM accounts") != 1 {
			t.Error("opening the database changed its contents")
		}
	})
}

// Who installs an older version, or forgets an instance, learns it.
func TestANewerSchemaIsAWarning(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		var log modelstest.LogBuffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		must(t, f.Migrate(t.Context(), logger, 0))
		if text := log.String(); text != "" {
			t.Errorf("a warning without a reason: %s", text)
		}
		modelstest.Exec(t, f.url, "INSERT INTO applied_migrations (file) VALUES ('29991231000000_newer.up.sql')")
		must(t, f.Migrate(t.Context(), logger, 0))
		if text := log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "of a newer portal") || !strings.Contains(text, "version=29991231000000") {
			t.Errorf("got %q", text)
		}
	})
}

func TestManyInstancesOpenAnEmptyDatabase(t *testing.T) {
	eachEmptyDatabase(t, func(t *testing.T, f *fixture) {
		var running sync.WaitGroup
		for range 8 {
			connections := open(t, f.url)
			running.Go(func() {
				if err := connections.Migrate(t.Context(), noLog, time.Minute); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		f.works(t)
	})
}

func TestAMigrationIsAppliedWholeOrNotAtAll(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		broken := fstest.MapFS{}
		for file, content := range later {
			broken[file] = &fstest.MapFile{Data: append(slices.Clone(content.Data), "; SELECT missing FROM api_keys"...)}
		}
		if err := f.MigrateTo(t.Context(), broken, noLog, time.Minute); err == nil {
			t.Fatal("no error")
		}
		must(t, f.MigrateTo(t.Context(), later, noLog, time.Minute))
		f.exec(t, "SELECT later FROM api_keys")
	})
}

// An instance that waits for another's migration continues when that instance dies.
func TestMigrationContinuesWhenTheLockHolderDies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.EmptyPostgresURL(t))
	ahead := f.holdMigrationLock(t)
	logs := &modelstest.LogBuffer{}
	migrated := make(chan error)
	go func() { migrated <- f.Migrate(context.WithoutCancel(t.Context()), logs.Logger(), 0) }()
	eventually(t, "the second instance waits", func() bool {
		return strings.Contains(logs.String(), "the migration waits for a lock")
	})
	f.exec(t, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = ? "+
		"AND database = (SELECT oid FROM pg_database WHERE datname = current_database())", database.MigrationLock)
	must(t, <-migrated)
	_ = ahead.Close() // the server has closed it
	f.works(t)
}

// A later migration runs on a database with rows, and an instance of this version works on its
// schema.
func TestALaterMigrationIsApplied(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		must(t, c.revokesAKey(t.Context()))
		for range 2 {
			must(t, f.MigrateTo(t.Context(), later, noLog, time.Minute))
		}
		f.exec(t, "UPDATE api_keys SET later = 'new'")
		must(t, f.Migrate(t.Context(), noLog, 0))
		must(t, f.customer(t).revokesAKey(t.Context()))
	})
}

// later is a migration of a later version that locks some tables exclusively.
var later = fstest.MapFS{"20990101000000_later.sql": {Data: []byte(
	"ALTER TABLE api_keys ADD COLUMN later text; ALTER TABLE activities ADD COLUMN later text",
)}}

// holdMigrationLock takes the lock of migrations and returns its connection.
func (f *fixture) holdMigrationLock(t *testing.T) bun.Conn {
	t.Helper()
	conn := modelstest.Value(f.db.Conn(t.Context()))(t)
	t.Cleanup(func() { _ = conn.Close() })
	must(t, errOf(conn.ExecContext(t.Context(), "SELECT pg_advisory_lock(?)", database.MigrationLock)))
	return conn
}

// An open reader, such as a backup, makes a migration wait. Revocations must not queue behind it.
func TestRevocationsPassAMigrationThatWaitsForAReader(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t))
	c := f.customer(t)
	reader := modelstest.Value(f.db.BeginTx(t.Context(), nil))(t)
	for _, table := range []string{"api_keys", "activities"} {
		must(t, errOf(reader.ExecContext(t.Context(), "SELECT id FROM "+table+" LIMIT 1")))
	}
	logs := &modelstest.LogBuffer{}
	migrated := make(chan error, 1)
	go func() { migrated <- f.MigrateTo(context.WithoutCancel(t.Context()), later, logs.Logger(), time.Minute) }()
	for range 10 {
		if err := c.revokesAKey(t.Context()); err != nil {
			t.Errorf("revoke while a migration waits: %v", err)
		}
	}
	eventually(t, "the log says what the migration waits for", func() bool {
		return strings.Contains(logs.String(), "the migration waits for a lock")
	})
	must(t, reader.Rollback())
	must(t, <-migrated)
	f.exec(t, "SELECT later FROM api_keys")
}

func TestAnUpToDateDatabaseNeedsNoLock(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t))
	f.holdMigrationLock(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, f.Migrate(ctx, noLog, 0))
}

func TestTheWaitOfAMigrationIsBounded(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]string{
		"another migration": fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", database.MigrationLock),
		"a reader":          "SELECT id FROM api_keys LIMIT 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, modelstest.PostgresURL(t))
			holder := modelstest.Value(f.db.BeginTx(t.Context(), nil))(t)
			t.Cleanup(func() { _ = holder.Rollback() })
			must(t, errOf(holder.ExecContext(t.Context(), hold)))
			logs := &modelstest.LogBuffer{}
			err := f.MigrateTo(t.Context(), later, logs.Logger(), 3*time.Second)
			if !errors.Is(err, database.ErrUnavailable) || !strings.Contains(err.Error(), "waited 3s for a lock, held by process ") {
				t.Errorf("got %v", err)
			}
			if !strings.Contains(logs.String(), "the migration waits for a lock") {
				t.Errorf("the log does not say what it waits for: %s", logs)
			}
		})
	}
}
