package api

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// handClock is a time that only a test moves.
type handClock struct{ at time.Time }

func newHandClock() *handClock { return &handClock{time.Unix(1_767_225_600, 0)} }

func (c *handClock) now() time.Time { return c.at }

// numbered is the id of one of many keys.
func numbered(n int) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)*0x9E3779B97F4A7C15)
	return id
}

func TestPolicyTellsTheTimeInWhichAnEmptyBucketFills(t *testing.T) {
	for limit, want := range map[RateLimit]string{
		{50, 100}:      `"key";q=100;w=2`,
		{50, 101}:      `"key";q=101;w=3`,
		{100, 1}:       `"key";q=1;w=1`,
		{1, 60}:        `"key";q=60;w=60`,
		{1_000_000, 1}: `"key";q=1;w=1`,
		{1, 1_000_000}: `"key";q=1000000;w=1000000`,
	} {
		if got := newRateLimiter(limit, nil).policy; got != want {
			t.Errorf("%v: %s, want %s", limit, got, want)
		}
	}
}

// In no stretch of time are there more requests than the burst and what the rate
// gives in it; who waits as long as was said is served, and a moment earlier not.
func TestNoStretchOfTimeHasMoreThanTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := RateLimit{rapid.IntRange(1, 2000).Draw(t, "per second"), rapid.IntRange(1, 20).Draw(t, "burst")}
		clock := newHandClock()
		l := newRateLimiter(limit, clock.now)
		var served []time.Time
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			clock.at = clock.at.Add(time.Duration(rapid.Int64Range(0, int64(3*l.interval)).Draw(t, "gap")))
			wait := l.take(uuid.UUID{})
			if wait > 0 && rapid.Bool().Draw(t, "waits") {
				clock.at = clock.at.Add(wait - 1)
				if l.take(uuid.UUID{}) != 1 {
					t.Fatal("served earlier than was said")
				}
				clock.at = clock.at.Add(1)
				wait = l.take(uuid.UUID{})
				if wait > 0 {
					t.Fatal("not served when it was said")
				}
			}
			if wait == 0 {
				served = append(served, clock.at)
			}
		}
		for from := range served {
			for to := from; to < len(served); to++ {
				allowed := float64(limit.Burst) + served[to].Sub(served[from]).Seconds()*float64(limit.PerSecond)
				if n := to - from + 1; float64(n) > allowed+1e-6 {
					t.Fatalf("%v: %d requests in %v", limit, n, served[to].Sub(served[from]))
				}
			}
		}
	})
}

// Whoever asks reads the clock before it is their turn: times come out of order.
func TestTakersAtOnceDoNotExceedTheLimit(t *testing.T) {
	limit := RateLimit{PerSecond: 5000, Burst: 50}
	l := newRateLimiter(limit, nil)
	var served atomic.Int64
	var takers sync.WaitGroup
	begun := time.Now()
	for range 8 * runtime.GOMAXPROCS(0) {
		takers.Go(func() {
			for range 5000 {
				if l.take(uuid.UUID{}) == 0 {
					served.Add(1)
				}
			}
		})
	}
	takers.Wait()
	most := float64(limit.Burst) + time.Since(begun).Seconds()*float64(limit.PerSecond)
	if n := served.Load(); n < int64(limit.Burst) || float64(n) > most {
		t.Errorf("%d were served, want %d to %.0f", n, limit.Burst, most)
	}
}

// What is remembered has its place from the beginning, however many keys come.
func TestWhatTheLimiterRemembersIsBounded(t *testing.T) {
	l := newRateLimiter(RateLimit{PerSecond: 1, Burst: 2}, newHandClock().now)
	if size := unsafe.Sizeof(*l); size > 2<<20 {
		t.Errorf("a limiter has %d bytes", size)
	}
	n := 0
	if allocated := testing.AllocsPerRun(4*bucketSets*setSize, func() { n++; l.take(numbered(n)) }); allocated > 0 {
		t.Errorf("%v allocations for another key", allocated)
	}
}

func TestAThousandKeysAreEachHeldToTheirOwnLimit(t *testing.T) {
	const burst = 3
	l := newRateLimiter(RateLimit{PerSecond: 1, Burst: burst}, newHandClock().now)
	for request := range 2 * burst {
		for n := range 1000 {
			if served := l.take(numbered(n)) == 0; served != (request < burst) {
				t.Fatalf("request %d of key %d: served %v", request+1, n, served)
			}
		}
	}
}

// Nobody gets a fresh bucket by having others crowd theirs out.
func TestEmptyBucketsAreTheLastToBeForgotten(t *testing.T) {
	clock := newHandClock()
	l := newRateLimiter(RateLimit{PerSecond: 1, Burst: 2}, clock.now)
	for range 2 {
		l.take(numbered(0))
	}
	for n := 1; n <= 3*bucketSets*setSize; n++ {
		l.take(numbered(n))
	}
	if l.take(numbered(0)) == 0 {
		t.Error("a key that had used up its burst has been forgotten")
	}
	clock.at = clock.at.Add(time.Second)
	if l.take(numbered(0)) > 0 {
		t.Error("after waiting it is still limited")
	}
}

// BenchmarkRateLimiter is what a request that is let through pays for the limit.
func BenchmarkRateLimiter(b *testing.B) {
	generous := RateLimit{PerSecond: 1_000_000, Burst: 1_000_000}
	const many = 10_000
	ids := make([]uuid.UUID, many)
	for n := range ids {
		ids[n] = numbered(n)
	}
	b.Run("one key", func(b *testing.B) {
		l := newRateLimiter(generous, nil)
		b.ReportAllocs()
		for b.Loop() {
			l.take(ids[0])
		}
	})
	b.Run("one key, 64 at once", func(b *testing.B) {
		l := newRateLimiter(generous, nil)
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l.take(ids[0])
			}
		})
	})
	b.Run("10,000 keys in turn", func(b *testing.B) {
		l := newRateLimiter(generous, nil)
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			l.take(ids[n%many])
		}
	})
	b.Run("always another key", func(b *testing.B) {
		l := newRateLimiter(generous, nil)
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			l.take(numbered(n))
		}
	})
}
