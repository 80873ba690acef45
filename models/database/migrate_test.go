package database_test

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

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
	files := modelstest.Value(fs.Glob(f.migrations(), "*.up.sql"))(t)
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
		return strings.Contains(logs.String(), "waiting for the migration of another instance")
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
