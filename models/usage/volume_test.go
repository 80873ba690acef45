package usage_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"portal/models/modelstest"
	"portal/models/usage"
)

// Two instances write keys with many sources in small transactions, so that they do not wait long
// for each other's locks.
func TestInstancesShareKeysWithManySources(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		keys := db.newKeys(t, 200)
		var running sync.WaitGroup
		for instance := range 2 {
			r := db.recorder(t)
			for _, key := range keys {
				for i := range 20 {
					r.Count(key, key, usage.NewSource(netip.MustParseAddr("192.0.2.7"), fmt.Sprintf("client/%d.%d", instance, i)), noon, 1, 0)
				}
			}
			if stats := r.Stats(); stats.Pending != len(keys) {
				t.Errorf("before the flush: %+v", stats)
			}
			running.Go(func() {
				// On a busy machine, a batch of the other instance may hold its
				// locks for longer than a flush waits. A flush that fails loses
				// nothing.
				err := r.Flush(t.Context())
				for began := time.Now(); err != nil && time.Since(began) < time.Minute; {
					err = r.Flush(t.Context())
				}
				if err != nil {
					t.Errorf("the flush failed: %v", err)
				}
				if stats := r.Stats(); stats.Batches < int64(20*len(keys)/usage.BatchSources) || stats.Written != int64(len(keys)) || stats.Pending != 0 {
					t.Errorf("%+v", stats)
				}
			})
		}
		running.Wait()
		if byHour, byDay := db.total(t); byHour != int64(2*20*len(keys)) || byDay != byHour {
			t.Errorf("%d requests by the hour, %d by the day", byHour, byDay)
		}
	})
}

// An update of a key's row stays on its page and needs no new index entry (HOT).
func TestUpdatesOfUsageAreHOT(t *testing.T) {
	t.Parallel()
	db := open(t, modelstest.PostgresURL(t))
	r := db.recorder(t)
	countEach(r, db.newKeys(t, 5000), noon)
	must(t, r.Flush(t.Context()))
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }()
	_, err = tx.ExecContext(t.Context(), "UPDATE api_key_last_uses SET used_at = now(), requests = requests + 1, refusals = 1, hour = now()")
	must(t, err)
	var updates struct{ All, Hot int }
	must(t, tx.NewRaw(`SELECT n_tup_upd AS "all", n_tup_hot_upd AS hot FROM pg_stat_xact_user_tables WHERE relname = 'api_key_last_uses'`).
		Scan(t.Context(), &updates))
	if updates.All != 5000 || updates.Hot < 4900 {
		t.Errorf("%+v", updates)
	}
}

// BenchmarkFlush writes the usage of many keys. The first flush inserts the rows, the others update
// them.
func BenchmarkFlush(b *testing.B) {
	for name, url := range map[string]func(testing.TB) string{"sqlite": modelstest.SQLiteURL, "postgres": modelstest.PostgresURL} {
		for _, n := range []int{1, 1000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d keys", name, n), func(b *testing.B) {
				db := open(b, url(b))
				r, keys := db.recorder(b), db.newKeys(b, n)
				countEach(r, keys, noon)
				must(b, r.Flush(b.Context()))
				for b.Loop() {
					countEach(r, keys, noon)
					must(b, r.Flush(b.Context()))
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/key")
			})
		}
	}
}

// BenchmarkMemory reports the memory of a key that waits for a flush.
func BenchmarkMemory(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		r, before := usage.New(nil, false, 0), heap()
		for i := range n {
			r.Count(account, id(i), backend, noon, 1, 0)
		}
		b.ReportMetric(float64(heap()-before)/n, "bytes/key")
		runtime.KeepAlive(r)
	}
}

// heap returns the size of the live heap.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// BenchmarkCount counts requests of one key and of many keys.
func BenchmarkCount(b *testing.B) {
	for _, n := range []int{1, 100_000} {
		b.Run(fmt.Sprintf("%d keys", n), func(b *testing.B) {
			b.ReportAllocs()
			r, address := usage.New(nil, false, 0), netip.MustParseAddr("192.0.2.7")
			for i := 0; b.Loop(); i++ {
				r.Count(account, id(i%n), usage.NewSource(address, "python-requests/2.32.3"), noon, 1, 0)
			}
		})
	}
}
