package usage_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"portal/models/modelstest"
	"portal/models/usage"
)

// A piece whose answer was lost is repeated, and counts nothing twice.
func TestLostAnswersCountNothingTwice(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		r := recorder(t, lossy{db.writer(t), func(usage.Piece) bool { return rand.N(2) == 0 }})
		keys := newKeys(2*usage.PieceKeys + 100)
		const rounds = 6
		lost := 0
		for round := range rounds {
			// Some counts are in another hour.
			countEach(r, keys, noon.Add(time.Duration(round%2)*time.Hour))
			if err := r.Flush(t.Context()); err != nil {
				lost++
			}
		}
		flushed(t, r)
		want := int64(rounds * len(keys))
		if byHour, byDay := db.total(t); byHour != want || byDay != want || lost == 0 {
			t.Errorf("%d requests by the hour and %d by the day, want %d; %d flushes failed", byHour, byDay, want, lost)
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
		// On a slow machine, a piece can also miss its deadline.
		if !errors.Is(err, errLost) && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
}

// The connection breaks after PostgreSQL has committed and before the answer arrives.
func TestConnectionThatBreaksAfterTheCommit(t *testing.T) {
	t.Parallel()
	db := open(t, modelstest.PostgresURL(t))
	cut := newCutter(t, db.url)
	r := recorder(t, usage.NewPostgres(func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, cut.url) }, func() error { return nil }))
	keys := newKeys(2*usage.PieceKeys + 100)
	const rounds = 4
	for round := range rounds {
		countEach(r, keys, noon.Add(time.Duration(round)*time.Hour))
		cut.arm(round)
		for tries := 0; ; tries++ {
			err := r.Flush(t.Context())
			if err == nil {
				break
			}
			if t.Logf("round %d: %v", round, err); tries == 9 {
				t.Fatal("the connection stays broken")
			}
		}
	}
	if cuts := cut.cuts.Load(); cuts != rounds-1 {
		t.Errorf("%d connections were cut, want %d", cuts, rounds-1)
	}
	want := int64(rounds * len(keys))
	if byHour, byDay := db.total(t); byHour != want || byDay != want {
		t.Errorf("%d requests by the hour and %d by the day, want %d", byHour, byDay, want)
	}
}

// A report counts each request once at any moment of a flush, also if answers are lost.
func TestReportsDuringFlushes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		r := recorder(t, lossy{db.writer(t), func(usage.Piece) bool { return rand.N(4) == 0 }})
		keys := sorted(newKeys(2 * usage.PieceKeys))
		key := keys[len(keys)-1] // in the last piece
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			for ctx.Err() == nil {
				countEach(r, keys[:len(keys)-1], time.Now())
				_ = r.Flush(context.WithoutCancel(ctx))
			}
		})
		report := func() int64 {
			var stored struct{ Requests, Piece int64 }
			must(t, db.NewRaw(`SELECT COALESCE((SELECT sum(requests) FROM api_key_hourly_usage WHERE api_key_id = ?), 0)
					+ COALESCE((SELECT requests FROM api_key_last_uses WHERE api_key_id = ?), 0) AS requests,
				COALESCE((SELECT piece FROM usage_flushes WHERE recorder_id = ?), 0) AS piece`, key, key, r.ID()).Scan(t.Context(), &stored))
			r.Later(key, stored.Piece, func(_ time.Time, requests, _ int64) { stored.Requests += requests })
			return stored.Requests
		}
		var used int64
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
			at := time.Now().Add(time.Duration(rand.N(3)) * time.Hour)
			r.Count(key, at, 1, 0)
			used++
			if counted := report(); counted != used {
				t.Errorf("%d requests after %d", counted, used)
				break
			}
		}
		stop()
		running.Wait()
		flushed(t, r)
		if stored := db.stored(t, key); stored != used || used < 20 {
			t.Errorf("%d requests are stored, want %d", stored, used)
		}
	})
}

func TestLastUseIsKnownDuringFlushes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		r, key := db.recorder(t), uuid.New()
		if last := r.LastUse(key, nil); last != nil {
			t.Errorf("before the first use: %v", last)
		}
		r.Count(key, noon, 0, 1)
		if last := r.LastUse(key, nil); last != nil {
			t.Errorf("after a refused request: %v", last)
		}
		for range 3 {
			at := noon
			r.Count(key, at, 1, 0)
			r.Count(key, at.Add(-time.Minute), 1, 0) // another clock
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

// Another session holds the row of one key for long. The other keys are written meanwhile, and
// nothing is lost.
func TestLockedRowDelaysOneKey(t *testing.T) {
	t.Parallel()
	db := open(t, modelstest.PostgresURL(t))
	r, keys := db.recorder(t), newKeys(100)
	countEach(r, keys, noon)
	must(t, r.Flush(t.Context()))
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	_, err = tx.ExecContext(t.Context(), "UPDATE api_key_last_uses SET used_at = used_at WHERE api_key_id = ?", keys[50])
	must(t, err)
	for range 2 {
		countEach(r, keys, noon)
		started := time.Now()
		must(t, r.Flush(t.Context()))
		if took := time.Since(started); took > 30*time.Second {
			t.Errorf("the flush took %s", took)
		}
	}
	if others, locked := db.stored(t, keys[0]), db.stored(t, keys[50]); others != 3 || locked != 1 {
		t.Errorf("%d requests of other keys, %d of the locked one", others, locked)
	}
	if stats := r.Stats(); stats.Pending != 1 {
		t.Errorf("%+v", stats)
	}
	must(t, tx.Rollback())
	must(t, r.Flush(t.Context()))
	if locked := db.stored(t, keys[50]); locked != 3 {
		t.Errorf("%d requests of the key that was locked, want 3", locked)
	}
}

// When too many keys wait for a flush, memory does not grow any more. The requests of the keys that
// wait are still counted.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	db := open(t, modelstest.SQLiteURL(t))
	r := usage.New(db.writer(t), false)
	first := uuid.New()
	r.Count(first, noon, 1, 0)
	for i := range usage.MaxPending + 9 {
		r.Count(uuid.UUID{0: byte(i), 1: byte(i >> 8), 2: byte(i >> 16), 15: 1}, noon, 1, 0)
	}
	r.Count(first, noon, 1, 0)
	if stats := r.Stats(); stats.Pending != usage.MaxPending || stats.Dropped != 10 {
		t.Errorf("%+v", stats)
	}
	var requests int64
	r.Later(first, 0, func(_ time.Time, n, _ int64) { requests += n })
	if requests != 2 {
		t.Errorf("%d requests with the first key", requests)
	}
}

// A flush that fails loses nothing, and uses of the same hour are added to those that wait.
func TestFailedFlushesLoseNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		r, keys := db.recorder(t), newKeys(10)
		db.exec(t, "ALTER TABLE api_key_last_uses RENAME COLUMN hour TO hour_away")
		for range 5 {
			countEach(r, keys, noon)
			if err := r.Flush(t.Context()); err == nil {
				t.Fatal("the flush succeeded")
			}
		}
		if stats := r.Stats(); stats.Pending > 2*len(keys) || stats.Lag == 0 {
			t.Errorf("%+v", stats)
		}
		db.exec(t, "ALTER TABLE api_key_last_uses RENAME COLUMN hour_away TO hour")
		must(t, r.Flush(t.Context()))
		if byHour, _ := db.total(t); byHour != int64(5*len(keys)) {
			t.Errorf("%d requests, want %d", byHour, 5*len(keys))
		}
	})
}

// A database that takes long for a piece gets more time at each attempt.
func TestSlowPiecesAreWrittenAtLast(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		attempts := 0
		r, key := recorder(t, slow{db.writer(t), 20 * time.Second, &attempts}), uuid.New()
		r.Count(key, noon, 1, 0)
		for err := r.Flush(t.Context()); err != nil; err = r.Flush(t.Context()) {
			if !errors.Is(err, context.DeadlineExceeded) || attempts > 9 {
				t.Fatal(err, attempts)
			}
		}
		if attempts != 5 || db.stored(t, key) != 1 { // 2, 4, 8, 16 and 32 seconds
			t.Errorf("%d attempts, %d requests", attempts, db.stored(t, key))
		}
	})
}
