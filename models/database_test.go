package models_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"portal/models"
	"portal/models/modelstest"
)

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
	conn := modelstest.Value(f.db.Conn(t.Context()))(t)
	defer func() { _ = conn.Close() }()
	must(t, errOf(conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")))
	for name, limit := range map[string]time.Duration{"a deadline before SQLite's": 200 * time.Millisecond, "a later one": time.Minute} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		started := time.Now()
		_, err := f.Keys.Revoke(ctx, c.ID, key.ID, c.actor)
		if took := time.Since(started); !errors.Is(err, models.ErrUnavailable) || took > 20*time.Second {
			t.Errorf("%s: %v after %s", name, err, took)
		}
		cancel()
	}
	use(t, f.Store, secret, 3)
	if keys, err := f.Keys.Active(t.Context(), c.ID); err != nil || len(keys) != 1 || keys[0].LastUsedAt == nil {
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
					if _, err := s.API.Authenticate(ctx, secret); err != nil && time.Now().Before(end) {
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
