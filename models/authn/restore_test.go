package authn_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"portal/models"
	"portal/models/authn"
	"portal/models/modelstest"
)

// switching is a source whose database can be replaced, as by a failover to a standby that lags
// behind or by a restored backup.
type switching struct{ current atomic.Pointer[authn.Source] }

func (s *switching) Epoch(deadline time.Time) (authn.Moment, error) {
	return (*s.current.Load()).Epoch(deadline)
}

func (s *switching) Keys(deadline time.Time, wanted []authn.KeyRef) (authn.Moment, map[authn.KeyRef]authn.Key, error) {
	return (*s.current.Load()).Keys(deadline, wanted)
}

func (s *switching) Close() error { return (*s.current.Load()).Close() }

// TestKeyThatARestoredStateLacksIsUnknown generates and uses a key, and then returns to the
// database as it was before.
func TestKeyThatARestoredStateLacksIsUnknown(t *testing.T) {
	t.Parallel()
	for name, newURL := range map[string]func(testing.TB) string{
		"sqlite": modelstest.SQLiteURL, "postgres": modelstest.PostgresURL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, earlierURL := newURL(t), newURL(t)
			f := newFixture(t, url)
			modelstest.Open(t, earlierURL, models.Options{})
			// The earlier state has the epoch from before the key was generated.
			var epoch []byte
			now, earlierDB := modelstest.OpenDatabase(t, url), modelstest.OpenDatabase(t, earlierURL)
			must(t, now.QueryRowContext(t.Context(), "SELECT value FROM auth_epoch").Scan(&epoch))
			if _, err := earlierDB.ExecContext(t.Context(), "UPDATE auth_epoch SET value = ?", epoch); err != nil {
				t.Fatal(err)
			}
			var source switching
			latest, earlier := newSource(t, url), newSource(t, earlierURL)
			source.current.Store(&latest)
			authenticator := authn.New(&source, 10*time.Second)
			_, hash := f.generate(t)
			for range 2 {
				if key, _, err := authenticator.Lookup(t.Context(), hash); err != nil || !key.Active {
					t.Fatalf("%+v, %v", key, err)
				}
			}
			source.current.Store(&earlier)
			if key, _, err := authenticator.Lookup(t.Context(), hash); !errors.Is(err, authn.ErrKeyUnknown) {
				t.Errorf("a key that the database lacks is accepted: %+v, %v", key, err)
			}
			if err := errors.Join(latest.Close(), earlier.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNewConnectionDropsMemory deletes a key without firing the triggers, as a careless restore
// does.
func TestNewConnectionDropsMemory(t *testing.T) {
	t.Parallel()
	url := modelstest.PostgresURL(t)
	f := newFixture(t, url)
	_, hash := f.generate(t)
	if _, _, err := f.Lookup(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
	modelstest.Exec(t, url, "SET session_replication_role = replica; DELETE FROM api_keys")
	modelstest.Exec(t, url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	if key, _, err := f.Lookup(t.Context(), hash); !errors.Is(err, authn.ErrKeyUnknown) {
		t.Errorf("%+v, %v", key, err)
	}
}
