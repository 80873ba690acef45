package models_test

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun/migrate"

	"portal/migrations"
	"portal/models"
	"portal/models/modelstest"
)

// eachEmptyDatabase is [eachDatabase] without a store and without a schema.
func eachEmptyDatabase(t *testing.T, run func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{
		"sqlite": modelstest.EmptySQLiteURL, "postgres": modelstest.EmptyPostgresURL,
	} {
		t.Run(name, func(t *testing.T) {
			url := url(t)
			run(t, &fixture{url: url, clock: newClock(), db: modelstest.OpenDatabase(t, url)})
		})
	}
}

func (f *fixture) migrations() fs.FS {
	if f.postgres() {
		return migrations.Postgres()
	}
	return migrations.SQLite()
}

func (f *fixture) migrator(t *testing.T) *migrate.Migrator {
	t.Helper()
	found := migrate.NewMigrations()
	must(t, found.Discover(f.migrations()))
	return migrate.NewMigrator(f.db, found, migrate.WithMarkAppliedOnSuccess(true))
}

// works checks that the schema is complete and was applied once.
func (f *fixture) works(t *testing.T) {
	t.Helper()
	f.briefly(t, models.Options{}, func(s *models.Store) {
		f.Store = s
		c := f.customer(t)
		_, secret := f.key(t, c)
		use(t, s, secret, 1)
		f.session(t, c)
		if len(f.activities(t, c)) != 2 {
			t.Error("the activity log is incomplete")
		}
	})
	f.epoch(t)
	files, err := fs.Glob(f.migrations(), "*.up.sql")
	must(t, err)
	if n := f.count(t, "SELECT count(*) FROM bun_migrations"); n != len(files) {
		t.Errorf("%d migrations are marked as applied, want %d", n, len(files))
	}
	if n := f.count(t, "SELECT count(*) FROM auth_epoch"); n != 1 {
		t.Errorf("%d epochs", n)
	}
}

func TestReopeningChangesNothing(t *testing.T) {
	eachEmptyDatabase(t, func(t *testing.T, f *fixture) {
		f.works(t)
		epoch := f.epoch(t)
		f.briefly(t, models.Options{}, func(*models.Store) {})
		if string(f.epoch(t)) != string(epoch) || f.count(t, "SELECT count(*) FROM accounts") != 1 {
			t.Error("opening the database changed its contents")
		}
	})
}

func TestManyInstancesOpenAnEmptyDatabase(t *testing.T) {
	eachEmptyDatabase(t, func(t *testing.T, f *fixture) {
		stores := make([]*models.Store, 8)
		_, errs := atOnce(len(stores), func(i int) (err error) {
			stores[i], err = models.Open(t.Context(), f.url, models.Options{MigrationWait: time.Minute, Timeout: time.Minute})
			return err
		})
		for _, err := range errs {
			t.Error(err)
		}
		for _, store := range stores {
			if store == nil {
				continue
			}
			if err := store.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			if err := store.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		f.works(t)
	})
}

// A crash at any point of a migration leaves a database that the next start migrates.
func TestMigrationAfterACrash(t *testing.T) {
	for name, crash := range map[string]func(t *testing.T, f *fixture){
		"before anything was applied":      func(*testing.T, *fixture) {},
		"under the lock of Bun's migrator": func(t *testing.T, f *fixture) { must(t, f.migrator(t).Lock(t.Context())) },
		"with one of Bun's tables":         func(t *testing.T, f *fixture) { f.exec(t, "DROP TABLE bun_migration_locks") },
		"within the transaction": func(t *testing.T, f *fixture) {
			tx, err := f.db.BeginTx(t.Context(), nil)
			must(t, err)
			for _, file := range f.files(t, "*.up.sql") {
				must(t, errOf(tx.ExecContext(t.Context(), file)))
			}
			must(t, tx.Rollback())
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachEmptyDatabase(t, func(t *testing.T, f *fixture) {
				must(t, f.migrator(t).Init(t.Context()))
				crash(t, f)
				f.works(t)
			})
		})
	}
}

// An instance that waits for another's migration continues when that instance dies.
func TestMigrationContinuesWhenTheLockHolderDies(t *testing.T) {
	t.Parallel()
	url := modelstest.EmptyPostgresURL(t)
	f := &fixture{url: url, clock: newClock(), db: modelstest.OpenDatabase(t, url)}
	ahead := f.holdMigrationLock(t)
	logs := &modelstest.LogBuffer{}
	opened := make(chan error)
	go func() {
		store, err := models.Open(context.WithoutCancel(t.Context()), url, models.Options{Logger: logs.Logger()})
		if err == nil {
			err = store.Close(context.WithoutCancel(t.Context()))
		}
		opened <- err
	}()
	eventually(t, "the second instance waits", func() bool {
		return strings.Contains(logs.String(), "waiting for the migration of another instance")
	})
	f.exec(t, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = ? "+
		"AND database = (SELECT oid FROM pg_database WHERE datname = current_database())", 0x6e61735f)
	if err := <-opened; err != nil {
		t.Error(err)
	}
	_ = ahead.Close() // the server has closed it
	f.works(t)
}

// A later migration runs on a database with rows, and an instance of this version works on its schema.
func TestALaterMigrationIsApplied(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		_, secret := f.key(t, c)
		must(t, f.Migrate(t.Context(), later, time.Minute))
		must(t, f.Migrate(t.Context(), later, time.Minute))
		f.exec(t, "UPDATE api_keys SET later = 'new'")
		use(t, f.Store, secret, 1)
		key, _ := f.key(t, c)
		f.revoke(t, key)
		f.briefly(t, models.Options{}, func(s *models.Store) { use(t, s, secret, 1) })
	})
}

func (f *fixture) files(t *testing.T, pattern string) (contents []string) {
	t.Helper()
	names, err := fs.Glob(f.migrations(), pattern)
	must(t, err)
	for _, name := range names {
		content, err := fs.ReadFile(f.migrations(), name)
		must(t, err)
		contents = append(contents, string(content))
	}
	return contents
}
