package models_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"portal/models"
	"portal/models/database"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/value"
)

// Hosts before the primary refuse connections, or modelstest.Accept them and never answer.
func TestPostgresURLOfSeveralHosts(t *testing.T) {
	t.Parallel()
	url := modelstest.PostgresURL(t)
	f := newFixture(t, url, models.Options{})
	_, secret := f.Key(t, f.Customer(t))
	hosts := "@127.0.0.1:1," + silentHost(t) + "," + silentHost(t) + "," + silentHost(t) + ","
	for _, suffix := range []string{"", "&connect_timeout=30"} {
		started := time.Now()
		store := modelstest.Open(t, strings.Replace(url, "@", hosts, 1)+suffix, models.Options{})
		modelstest.Use(t, store, secret, 3)
		must(t, store.SignIn.Ready(t.Context()))
		if took := time.Since(started); took > 25*time.Second {
			t.Errorf("%q: %s", suffix, took)
		}
	}
}

// While another process writes the file, a write fails with an error and reads still work.
func TestSQLiteThatAnotherProcessWrites(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.SQLiteURL(t), models.Options{Timeout: models.Timeout})
	c := f.Customer(t)
	key, secret := f.Key(t, c)
	conn := modelstest.Value(f.DB.Conn(t.Context()))(t)
	defer func() { _ = conn.Close() }()
	must(t, errOf(conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")))
	for name, limit := range map[string]time.Duration{"a deadline before SQLite's": 200 * time.Millisecond, "a later one": time.Minute} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		started := time.Now()
		_, err := f.Keys.Revoke(ctx, c.ID, key.ID, "", c.Actor)
		if took := time.Since(started); !errors.Is(err, value.ErrUnavailable) || took > 20*time.Second {
			t.Errorf("%s: %v after %s", name, err, took)
		}
		cancel()
	}
	modelstest.Use(t, f.Store, secret, 3)
	if keys, err := f.Keys.Active(t.Context(), c.ID); err != nil || len(keys) != 1 || keys[0].LastUsedAt == nil {
		t.Errorf("listed %+v, %v", keys, err)
	}
	must(t, errOf(conn.ExecContext(t.Context(), "ROLLBACK")))
	f.Revoke(t, key)
}

// This test does not run in parallel, because goroutines of other tests would fail it.
func TestClosingLeavesNothingRunning(t *testing.T) { //nolint:tparallel // see above
	modelstest.Databases(t, func(t *testing.T, url string) {
		f := newFixture(t, url, models.Options{})
		_, secret := f.Key(t, f.Customer(t))
		_ = f.DB.Close()
		before := goleak.IgnoreCurrent() // the fixture's own store is closed after the test
		// The clock decides, because a context reports its deadline slightly late.
		end := time.Now().Add(20 * time.Millisecond)
		ctx, cancel := context.WithDeadline(t.Context(), end)
		f.Briefly(t, models.Options{}, func(s *models.Store) {
			_, errs := modelstest.AtOnce(20, func(int) error {
				for time.Now().Before(end) {
					if _, err := s.API.Authenticate(ctx, secret, keys.Source{}); err != nil && time.Now().Before(end) {
						return err
					}
				}
				return nil
			})
			checkErrors(t, "each", errs, nil)
		})
		cancel()
		f.Briefly(t, models.Options{}, func(*models.Store) {})
		goleak.VerifyNone(t, before)
	})
}

// silentHost returns the address of a host that accepts connections and never answers.
func silentHost(t *testing.T) string {
	t.Helper()
	listener := modelstest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

func TestAClockThatDiffersFromTheDatabasesIsLogged(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]string{0: "", time.Hour: `"ahead":"`, -time.Hour: `"ahead":"-`} {
		logged := &modelstest.LogBuffer{}
		store := modelstest.Open(t, modelstest.PostgresURL(t), models.Options{
			Logger: logged.Logger(), Now: func() time.Time { return time.Now().Add(ahead) },
		})
		must(t, store.WarnOfClock(t.Context()))
		if log := logged.String(); !strings.Contains(log, want) || want == "" && log != "" {
			t.Errorf("%s ahead: %q", ahead, log)
		}
	}
}

// A file that replaces the database may hold keys that were revoked since. So it is not used until
// the portal starts again, even if the old file comes back. While the file is missing, no empty
// database takes its place.
func TestReplacedSQLiteFileIsNotUsed(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	path, _ := database.SQLitePath(url)
	f := newFixture(t, url, models.Options{})
	c := f.Customer(t)
	key, secret := f.Key(t, c)
	_, keptSecret := f.Key(t, c)
	f.Exec(t, "VACUUM INTO '"+path+".backup'")
	f.Revoke(t, key)
	modelstest.Refuse(t, f.Store, secret, 1)
	unavailable := func(name string) {
		t.Helper()
		for do, err := range map[string]error{
			"authenticate": errOf(f.API.Authenticate(t.Context(), secret, keys.Source{})), "authenticate a kept key": errOf(f.API.Authenticate(t.Context(), keptSecret, keys.Source{})),
			"list": errOf(f.Keys.Active(t.Context(), c.ID)), "ready": f.API.Ready(t.Context()),
		} {
			if !errors.Is(err, value.ErrUnavailable) || !strings.Contains(err.Error(), "the SQLite file was replaced") {
				t.Errorf("%s: %s: %v", name, do, err)
			}
		}
	}
	files := []string{path, path + "-wal", path + "-shm"}
	for _, file := range files {
		must(t, os.Rename(file, file+".away"))
	}
	checkError(t, "without a file", errOf(f.API.Authenticate(t.Context(), keptSecret, keys.Source{})), value.ErrUnavailable)
	checkError(t, "without a file", errOf(f.Keys.Active(t.Context(), c.ID)), value.ErrUnavailable)
	for _, file := range files {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", file, err)
		}
		must(t, os.Rename(file+".away", file))
	}
	modelstest.Use(t, f.Store, keptSecret, 1)

	must(t, os.Rename(path, path+".old"))
	must(t, os.Rename(path+".backup", path))
	unavailable("with another file")
	for _, suffix := range []string{"-wal", "-shm"} {
		must(t, os.Rename(path+suffix, path+suffix+".old"))
	}
	unavailable("without the old -wal file")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		must(t, os.Rename(path+suffix+".old", path+suffix))
	}
	unavailable("with the old file again")
	f.Briefly(t, models.Options{}, func(s *models.Store) {
		modelstest.Refuse(t, s, secret, 1)
		modelstest.Use(t, s, keptSecret, 1)
	})
}
