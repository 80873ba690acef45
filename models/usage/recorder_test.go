package usage_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	connect "portal/models/database"
	"portal/models/modelstest"
	"portal/models/usage"
)

// A batch whose answer was lost is written again. That may count requests twice, but it loses none
// and does not change the last use.
func TestLostAnswersLoseNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		r := recorder(t, lossy{db.writer(t)})
		keys := db.newKeys(t, 2*usage.BatchSources+100)
		const rounds = 4
		lost := 0
		for round := range rounds {
			// Some counts are in another hour.
			countEach(r, keys, noon.Add(time.Duration(round%2)*time.Hour))
			if err := r.Flush(t.Context()); err != nil {
				lost++
			}
		}
		flushed(t, r)
		least := int64(rounds * len(keys))
		if byHour, byDay := db.total(t); byHour < least || byDay != byHour || lost == 0 {
			t.Errorf("%d requests by the hour and %d by the day, want at least %d; %d flushes failed", byHour, byDay, least, lost)
		}
		for _, key := range []uuid.UUID{keys[0], keys[len(keys)-1]} {
			var used time.Time
			must(t, db.NewRaw("SELECT used_at FROM api_key_last_uses WHERE api_key_id = ?", key).Scan(t.Context(), &used))
			if want := noon.Add(time.Hour); !used.Equal(want) {
				t.Errorf("last use %v, want %v", used, want)
			}
		}
		if stats := r.Stats(); stats.Pending != 0 || stats.Lag != 0 || stats.Dropped != 0 {
			t.Errorf("%+v", stats)
		}
	})
}

// flushed flushes until no answer is lost.
func flushed(t *testing.T, r *usage.Recorder) {
	t.Helper()
	for err := r.Flush(t.Context()); err != nil; err = r.Flush(t.Context()) {
		// On a slow machine, a batch can also miss its deadline.
		if !errors.Is(err, errLost) && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
}

// A server that was restarted has closed the connection, so the next flush opens another.
func TestClosedConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	db := open(t, modelstest.PostgresURL(t))
	db.SetMaxIdleConns(0) // the statements of the test get new connections
	r, key := db.recorder(t), db.newKey(t)
	for round := range 3 {
		r.Count(account, key, backend, noon, 1, 0)
		must(t, r.Flush(t.Context()))
		if stored := db.stored(t, key); stored != int64(round+1) {
			t.Errorf("%d requests are stored, want %d", stored, round+1)
		}
		modelstest.Exec(t, db.url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	}
}

// A primary that was demoted may keep its connections open.
func TestReadOnlyConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	db := open(t, modelstest.PostgresURL(t))
	connections := modelstest.Value(connect.Open(db.url, connect.Timeout))(t)
	must(t, connections.Close())
	pool := connections.Single()
	r, key := recorder(t, usage.NewPostgres(pool)), db.newKey(t)
	r.Count(account, key, backend, noon, 1, 0)
	_, err := pool.ExecContext(t.Context(), "SET default_transaction_read_only = on")
	must(t, err)
	if err := r.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Fatalf("the first flush: %v", err)
	}
	must(t, r.Flush(t.Context()))
	if stored := db.stored(t, key); stored != 1 {
		t.Errorf("%d requests are stored, want 1", stored)
	}
}

// A report counts each request and each refusal once at any moment of a flush, also if the clock
// stands still.
func TestReportsDuringFlushes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		r := db.recorder(t)
		keys := sorted(db.newKeys(t, 2*usage.BatchSources))
		key, refused := keys[len(keys)-1], keys[len(keys)-2] // in the last batch
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			for ctx.Err() == nil {
				countEach(r, keys[:len(keys)-2], time.Now())
				_ = r.Flush(context.WithoutCancel(ctx))
			}
		})
		report := func(key uuid.UUID) (n int64) {
			// Flushes without a pause can leave every attempt of one reading uncertain.
			certain := false
			read := func(since usage.Mark) (bool, error) {
				var stored struct {
					N      int64
					UsedAt *time.Time
				}
				err := db.NewRaw(`SELECT COALESCE((SELECT sum(requests + refusals) FROM api_key_hourly_usage WHERE api_key_id = ?), 0)
						+ COALESCE((SELECT requests + refusals FROM api_key_last_uses WHERE api_key_id = ?), 0) AS n,
					(SELECT used_at FROM api_key_last_uses WHERE api_key_id = ?) AS used_at`, key, key, key).Scan(t.Context(), &stored)
				n = stored.N
				certain = r.Unwritten(key, stored.UsedAt, since, func(_ time.Time, requests, refusals int64) { n += requests + refusals })
				return certain, err
			}
			for !certain {
				must(t, r.Read(t.Context(), read))
			}
			return n
		}
		var used int64
		at := noon
		for used < 100 {
			if used%20 == 0 {
				at = at.Add(time.Minute)
			}
			r.Count(account, key, backend, at, 1, 0)
			r.Count(account, refused, backend, at, 0, 1)
			used++
			if requests, refusals := report(key), report(refused); requests != used || refusals != used {
				t.Errorf("%d requests and %d refusals after %d", requests, refusals, used)
				break
			}
		}
		stop()
		running.Wait()
		flushed(t, r)
		if stored := db.stored(t, key); stored != used {
			t.Errorf("%d requests are stored, want %d", stored, used)
		}
	})
}

// While the first statement of the report runs, a batch is written, and leaves the memory.
func TestSlowReportIsReadAgain(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		r, key := db.recorder(t), db.newKey(t)
		attempts := 0
		must(t, r.Read(t.Context(), func(since usage.Mark) (certain bool, err error) {
			if attempts++; attempts == 1 {
				r.Count(account, key, backend, noon, 1, 0)
				must(t, r.Flush(t.Context()))
				r.Age()
				must(t, r.Flush(t.Context()))
			}
			return r.Unwritten(key, nil, since, func(time.Time, int64, int64) {}), nil
		}))
		if attempts != 2 {
			t.Errorf("the report was read %d times", attempts)
		}
	})
}

func TestLastUseIsKnownDuringFlushes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		r, key := db.recorder(t), db.newKey(t)
		if last := r.LastUse(key, nil); last != nil {
			t.Errorf("before the first use: %v", last)
		}
		r.Count(account, key, backend, noon, 0, 1)
		if last := r.LastUse(key, nil); last != nil {
			t.Errorf("after a refused request: %v", last)
		}
		for range 3 {
			at := noon
			r.Count(account, key, backend, at, 1, 0)
			r.Count(account, key, backend, at.Add(-time.Minute), 1, 0) // another clock
			// The second check is right after the flush: a statement may have read the
			// row before.
			for range 2 {
				if last := r.LastUse(key, nil); last == nil || !last.Equal(at) {
					t.Errorf("last use %v, want %v", last, at)
				}
				must(t, r.Flush(t.Context()))
			}
			later := at.Add(time.Second)
			if last := r.LastUse(key, &later); last != &later {
				t.Errorf("last use %v, want the stored one", last)
			}
		}
	})
}

// id returns one of many different ids.
func id(i int) uuid.UUID { return uuid.UUID{0: byte(i), 1: byte(i >> 8), 2: byte(i >> 16)} }

// When too many keys wait for a flush, memory does not grow any more, but requests of the keys that
// wait are still counted, and those of other accounts too.
func TestCountsBeforeAFlushAreBounded(t *testing.T) {
	t.Parallel()
	r := usage.New(nil, false, 0)
	first := uuid.New()
	keys := 0
	count := func(account uuid.UUID) {
		keys++
		r.Count(account, id(keys), backend, noon, 1, 0)
	}
	r.Count(account, first, backend, noon, 1, 0)
	for range usage.AccountKeys - 1 {
		count(account)
	}
	r.Pretend(usage.MaxPending - usage.AccountKeys - 5)
	for range 14 {
		count(account)
	}
	r.Count(account, first, backend, noon, 1, 0)
	const kept = usage.AccountKeys + 5
	if stats := r.Stats(); stats.Pending != kept || stats.Dropped != 9 {
		t.Errorf("%+v", stats)
	}
	var requests int64
	r.Unwritten(first, nil, 0, func(_ time.Time, n, _ int64) { requests += n })
	if requests != 2 {
		t.Errorf("%d requests with the first key", requests)
	}
	for i := range 200 {
		count(id(i))
		count(uuid.Max)
	}
	if stats := r.Stats(); stats.Pending != kept+300 || stats.Dropped != 109 {
		t.Errorf("after requests of other accounts: %+v", stats)
	}
	r.Pretend(usage.Reserve - 305)
	for i := range 10 {
		count(id(1000 + i))
	}
	if stats := r.Stats(); stats.Pending != kept+305 || stats.Dropped != 114 {
		t.Errorf("with very many accounts: %+v", stats)
	}
}

// Sources beyond the first 20 of a key, and beyond those that one account may have, are counted as
// all others.
func TestSourcesInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	r := usage.New(nil, false, 0)
	named, others := 0, int64(0)
	for key := range 300 {
		for i := range 30 {
			from := usage.NewSource(netip.MustParseAddr("192.0.2.7"), fmt.Sprint("client/", 30*key+i))
			for range 2 {
				r.Count(account, id(key), from, noon, 1, 0)
			}
		}
		r.UnwrittenSources(id(key), nil, 0, func(one usage.SourceEntry) {
			if one.Client() == "" {
				others += one.Requests
			} else if named++; one.Requests != 2 {
				t.Errorf("%+v", one)
			}
		})
	}
	if named != usage.AccountSources || others != 300*30*2-2*int64(named) {
		t.Errorf("%d sources, %d requests of others", named, others)
	}
	r.Count(uuid.New(), uuid.Max, backend, noon, 1, 0)
	r.UnwrittenSources(uuid.Max, nil, 0, func(one usage.SourceEntry) {
		if one.Source != backend {
			t.Errorf("another account's source is %+v", one)
		}
	})
}

// A source that comes when a key has 20 of them on a day stays, although each flush writes only one
// of its requests. A client that changes its name with each request does not replace it after that.
func TestSteadySourceIsStored(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		r, key := db.recorder(t), db.newKey(t)
		flush := func(client string, requests int64) {
			r.Count(account, key, usage.NewSource(netip.MustParseAddr("192.0.2.7"), client), noon, requests, 0)
			must(t, r.Flush(t.Context()))
		}
		for i := range 20 {
			flush(fmt.Sprint("early/", i), 2)
		}
		for range 5 {
			flush("steady/1.0", 1)
		}
		for i := range 50 {
			flush(fmt.Sprint("noise/", i), 1)
		}
		var stored []struct {
			Client   string
			Requests int64
		}
		must(t, db.NewRaw("SELECT client, requests FROM api_key_sources WHERE api_key_id = ? ORDER BY requests DESC", key).Scan(t.Context(), &stored))
		if len(stored) != 21 {
			t.Fatalf("%d rows: %v", len(stored), stored)
		}
		if others := stored[0]; others.Client != "" || others.Requests != 2+2+49 {
			t.Errorf("the others are %v", others)
		}
		if steady := stored[1]; steady.Client != "steady/1.0" || steady.Requests != 5 {
			t.Errorf("the second is %v", steady)
		}
	})
}

func TestSourceOfARequest(t *testing.T) {
	t.Parallel()
	for in, want := range map[[2]string]string{
		{"192.0.2.7", "curl/8.5.0"}:                     "192.0.2.7 curl/8.5.0",
		{"::ffff:192.0.2.7", "Mozilla/5.0 (X11) Gecko"}: "192.0.2.7 Mozilla/5.0",
		{"2001:db8:1:2:3::4", "Ruby"}:                   "2001:db8:1:2::/64 Ruby",
		{"fe80::1%eth0", " a/1\tb/2"}:                   "fe80::/64 a/1",
		{"", ""}:                                        "Unknown Unknown",
		{"", "(comment) a/1"}:                           "Unknown Unknown",
		{"", "a\x00b\x7f\u202e\xff/ü1 x"}:               "Unknown ab/ü1",
		{"", "\xff"}:                                    "Unknown Unknown",
		{"", strings.Repeat("a", 64)}:                   "Unknown " + strings.Repeat("a", 64),
		{"", strings.Repeat("ü", 65)}:                   "Unknown " + strings.Repeat("ü", 64),
		{"", strings.Repeat("a", 65)}:                   "Unknown " + strings.Repeat("a", 64),
		{"", strings.Repeat("a", 64) + " b"}:            "Unknown " + strings.Repeat("a", 64),
	} {
		address, _ := netip.ParseAddr(in[0])
		if from := usage.NewSource(address, in[1]); from.Address()+" "+from.Client() != want {
			t.Errorf("%q: %s %q, want %s", in, from.Address(), from.Client(), want)
		}
	}
}

// A flush that fails loses nothing, and uses of the same hour are added to those that wait.
func TestFailedFlushesLoseNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		r, keys := db.recorder(t), db.newKeys(t, 10)
		countEach(r, keys, noon)
		must(t, r.Flush(t.Context()))
		fail := func(name string, timeout time.Duration) {
			t.Helper()
			for range 2 {
				countEach(r, keys, noon)
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				err := r.Flush(ctx)
				cancel()
				if err == nil {
					t.Fatalf("%s: the flush succeeded", name)
				}
			}
			if stats := r.Stats(); stats.Pending > 2*len(keys) || stats.Lag == 0 {
				t.Errorf("%s: %+v", name, stats)
			}
		}
		modelstest.Exec(t, db.url, "ALTER TABLE api_key_last_uses RENAME COLUMN hour TO hour_away")
		fail("a missing column", time.Minute)
		modelstest.Exec(t, db.url, "ALTER TABLE api_key_last_uses RENAME COLUMN hour_away TO hour")
		// Another session holds the row of one key.
		tx, err := db.BeginTx(t.Context(), nil)
		must(t, err)
		_, err = tx.ExecContext(t.Context(), "UPDATE api_key_last_uses SET used_at = used_at WHERE api_key_id = ?", keys[5])
		must(t, err)
		fail("a locked row", 100*time.Millisecond)
		must(t, tx.Rollback())
		must(t, r.Flush(t.Context()))
		for _, key := range keys {
			if stored := db.stored(t, key); stored != 5 {
				t.Errorf("%d requests are stored, want 5", stored)
			}
		}
	})
}
