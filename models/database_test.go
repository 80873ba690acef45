package models_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"portal/models"
	"portal/models/modelstest"
)

func TestDatabaseURLs(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"sqlite:data/portal.db", "sqlite:/var/lib/portal.db", "sqlite:///var/lib/portal.db",
		"postgres://user:hunter2@db.example.com:5432/portal", "postgresql://db/portal?sslmode=require",
		"postgres://a.example.com,b.example.com:5433/portal", "postgres:///portal?host=/run/postgresql",
	} {
		checkError(t, url, models.CheckDatabaseURL(url), nil)
	}
	for _, url := range []string{
		"", "data/portal.db", "sqlite:", "sqlite::memory:", "mysql://user:hunter2@db/portal",
		"postgres:portal", "postgres://user:hunter2@db:port/portal",
		"postgres://user:hunter2@db/portal?sslmode=hunter2", "postgres://user:hunter2@[::1/portal",
	} {
		err := models.CheckDatabaseURL(url)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
		store, openErr := models.Open(t.Context(), url, models.Options{})
		if store != nil || openErr == nil || openErr.Error() != err.Error() {
			t.Errorf("open %s: %v", url, openErr)
		}
	}
}

func TestSQLitePaths(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"sqlite:data/portal.db": "data/portal.db", "sqlite:/a/b.db": "/a/b.db",
		"sqlite:///a/b.db": "/a/b.db",
	} {
		if path, ok := models.SQLitePath(url); path != want || !ok {
			t.Errorf("%s: %q, %t", url, path, ok)
		}
	}
	if path, ok := models.SQLitePath("postgres:///a/b.db"); path != "" || ok {
		t.Errorf("a PostgreSQL URL: %q, %t", path, ok)
	}
}

func TestSQLiteFileOfAnyName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"my portal.db", "a?mode=memory.db", "a#b.db", "100%41.db", "Zürich.db", "a&_pragma=x.db", "a:b.db"} {
		dir := filepath.Join(t.TempDir(), "data of "+name)
		must(t, os.Mkdir(dir, 0o700))
		modelstest.Open(t, "sqlite:"+filepath.Join(dir, name), models.Options{})
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		must(t, err)
		var found bool
		for _, file := range files {
			found = found || filepath.Base(file) == name
			if !strings.HasPrefix(filepath.Base(file), name) {
				t.Errorf("%s: made %s", name, file)
			}
		}
		if !found {
			t.Errorf("%s: made only %s", name, files)
		}
	}
}

// Other users of the machine must not read the database.
func TestNewSQLiteFilesArePrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := models.Open(t.Context(), "sqlite:"+filepath.Join(dir, "portal.db"), models.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close(context.Background())) })
	files, err := os.ReadDir(dir)
	must(t, err)
	if len(files) != 3 {
		t.Errorf("want the database, -wal and -shm: %v", files)
	}
	for _, file := range files {
		info, err := file.Info()
		must(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, want 0600", file.Name(), info.Mode())
		}
	}
}

func TestMissingDatabaseIsUnavailable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged.db")
	must(t, os.WriteFile(damaged, []byte(strings.Repeat("this is no database ", 100)), 0o600))
	for name, url := range map[string]string{
		"no directory":         "sqlite:" + filepath.Join(dir, "no", "portal.db"),
		"a directory":          "sqlite:" + dir,
		"another file":         "sqlite:" + damaged,
		"no server":            "postgres://portal@127.0.0.1:1/portal?sslmode=disable",
		"two hosts, both down": "postgres://portal@127.0.0.1:1,127.0.0.1:2/portal?sslmode=disable",
	} {
		store, err := models.Open(t.Context(), url, models.Options{})
		if store != nil || !errors.Is(err, models.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPostgresURLOfSeveralHosts(t *testing.T) {
	t.Parallel()
	url := modelstest.PostgresURL(t)
	several := strings.Replace(url, "@127.0.0.1:", "@127.0.0.1:1,127.0.0.1:", 1)
	f := newFixture(t, url, models.Options{})
	f.Store = modelstest.Open(t, several, models.Options{})
	_, secret := f.key(t, f.customer(t))
	use(t, f.Store, secret, 3)
}

// While another process writes the file, a write fails with an error and reads still work.
func TestSQLiteThatAnotherProcessWrites(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.SQLiteURL(t), models.Options{Timeout: models.Timeout})
	c := f.customer(t)
	key, secret := f.key(t, c)
	conn, err := f.db.Conn(t.Context())
	must(t, err)
	defer func() { _ = conn.Close() }()
	must(t, errOf(conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")))
	for name, limit := range map[string]time.Duration{"a deadline before SQLite's": 200 * time.Millisecond, "a later one": time.Minute} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		started := time.Now()
		_, err := f.RevokeAPIKey(ctx, c.ID, key.ID, c.actor)
		if took := time.Since(started); !errors.Is(err, models.ErrUnavailable) || took > 20*time.Second {
			t.Errorf("%s: %v after %s", name, err, took)
		}
		cancel()
	}
	use(t, f.Store, secret, 3)
	if keys, err := f.APIKeys(t.Context(), c.ID); err != nil || len(keys) != 1 || keys[0].LastUsedAt == nil {
		t.Errorf("listed %+v, %v", keys, err)
	}
	must(t, errOf(conn.ExecContext(t.Context(), "ROLLBACK")))
	f.revoke(t, key)
}

// This test does not run in parallel, because goroutines of other tests would fail it.
func TestClosingLeavesNothingRunning(t *testing.T) { //nolint:tparallel // see above
	modelstest.Databases(t, func(t *testing.T, url string) {
		before := goleak.IgnoreCurrent()
		f := newFixture(t, url, models.Options{})
		_, secret := f.key(t, f.customer(t))
		// The clock decides, because a context reports its deadline slightly late.
		end := time.Now().Add(20 * time.Millisecond)
		ctx, cancel := context.WithDeadline(t.Context(), end)
		f.briefly(t, models.Options{}, func(s *models.Store) {
			_, errs := atOnce(20, func(int) error {
				for time.Now().Before(end) {
					if _, err := s.Authenticate(ctx, secret); err != nil && time.Now().Before(end) {
						return err
					}
				}
				return nil
			})
			for _, err := range errs {
				t.Error(err)
			}
		})
		cancel()
		// The fixture's own store is closed after the test, so VerifyNone ignores its
		// goroutines.
		_ = f.db.Close()
		f.briefly(t, models.Options{}, func(*models.Store) {})
		goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("portal/models.repeat"), goleak.IgnoreAnyFunction("portal/models/usage.(*Recorder).Run"),
			goleak.IgnoreAnyFunction("portal/models.(*Store).purgeRegularly"),
			goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener"), goleak.IgnoreAnyFunction("database/sql.(*DB).connectionCleaner"))
	})
}
