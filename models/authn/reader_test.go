package authn_test

import (
	"database/sql"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portal/models"
	"portal/models/authn"
	"portal/models/modelstest"
)

// panicking is a reader that panics while broken is set.
type panicking struct {
	authn.Reader
	broken atomic.Bool
}

func (p *panicking) Keys(deadline time.Time, wanted []authn.KeyRef) (authn.Moment, map[authn.KeyRef]authn.Key, error) {
	if p.broken.Load() {
		panic("a bug")
	}
	return p.Reader.Keys(deadline, wanted)
}

func TestPanicFailsTheRequestsOfABatch(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	f := newFixture(t, url)
	_, hash := f.generate(t)
	reader := &panicking{Reader: newReader(t, url)}
	authenticator := authn.New(reader, 10*time.Second)
	reader.broken.Store(true)
	var running sync.WaitGroup
	for range 32 {
		running.Go(func() {
			for range 10 {
				if key, _, err := authenticator.Lookup(t.Context(), hash); err == nil || !strings.Contains(err.Error(), "a bug") {
					t.Errorf("%+v, %v", key, err)
				}
			}
		})
	}
	running.Wait()
	reader.broken.Store(false)
	if key, _, err := authenticator.Lookup(t.Context(), hash); err != nil || !key.Active {
		t.Errorf("afterwards: %+v, %v", key, err)
	}
	if err := authenticator.Close(); err != nil {
		t.Error(err)
	}
}

// switching is a reader whose database can be replaced, as by a failover to a standby that lags
// behind or by a restored backup.
type switching struct{ current atomic.Pointer[authn.Reader] }

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
			var reader switching
			latest, earlier := newReader(t, url), newReader(t, earlierURL)
			reader.current.Store(&latest)
			authenticator := authn.New(&reader, 10*time.Second)
			_, hash := f.generate(t)
			for range 2 {
				if key, _, err := authenticator.Lookup(t.Context(), hash); err != nil || !key.Active {
					t.Fatalf("%+v, %v", key, err)
				}
			}
			reader.current.Store(&earlier)
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

// The statement by ids contains the one by hashes, so this checks both.
func TestKeysAreReadThroughIndexes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		conn, err := modelstest.OpenDatabase(t, f.url).Conn(t.Context())
		must(t, err)
		defer func() { _ = conn.Close() }()
		explain := func(statement string) string {
			t.Helper()
			rows, err := conn.QueryContext(t.Context(), statement)
			must(t, err)
			defer func() { _ = rows.Close() }()
			columns, err := rows.Columns()
			must(t, err)
			var plan strings.Builder
			for rows.Next() {
				values := make([]any, len(columns))
				for i := range values {
					values[i] = new(sql.NullString)
				}
				must(t, rows.Scan(values...))
				plan.WriteString(values[len(values)-1].(*sql.NullString).String + "\n")
			}
			must(t, rows.Err())
			return plan.String()
		}
		var plan string
		var indexed []string
		if strings.HasPrefix(f.url, "sqlite:") {
			plan = explain("EXPLAIN QUERY PLAN " + strings.ReplaceAll(authn.SQLiteIDs, "json_each(?)", `json_each('["x"]')`))
			indexed = []string{"SEARCH k USING", "SEARCH a USING"}
		} else {
			// With these settings PostgreSQL plans for small tables as it does for
			// large ones.
			_, err := conn.ExecContext(t.Context(), `SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
				SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0; `+authn.Planner)
			must(t, err)
			_, err = conn.ExecContext(t.Context(), "PREPARE ids (bytea[], uuid[]) AS "+authn.PostgresIDs)
			must(t, err)
			plan = explain("EXPLAIN EXECUTE ids ('{}', '{}')")
			indexed = []string{"on api_keys k", "on accounts a"}
		}
		for _, part := range indexed {
			if strings.Count(plan, part) != 2 {
				t.Errorf("want %q twice:\n%s", part, plan)
			}
		}
		if strings.Contains(plan, "Gather") {
			t.Errorf("the plan starts worker processes:\n%s", plan)
		}
		if strings.Contains(plan, "Seq Scan on api_keys") || strings.Contains(plan, "Seq Scan on accounts") || strings.Contains(plan, "SCAN k") || strings.Contains(plan, "SCAN a\n") {
			t.Errorf("a whole table is read:\n%s", plan)
		}
	})
}
