package middleware

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"portal/models/modelstest"
)

// newClock returns a clock that only the test moves.
func newClock() *modelstest.Clock { return modelstest.NewClock(time.Unix(1_767_225_600, 0)) }

// numbered returns the id of the nth key.
func numbered(n int) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n)*0x9E3779B97F4A7C15)
	return id
}

// No interval has more requests than the burst plus the rate times its length. A request after
// exactly the returned wait is served; one nanosecond earlier it is not.
func TestNoIntervalHasMoreRequestsThanTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := RateLimit{rapid.IntRange(1, 2000).Draw(t, "per second"), rapid.IntRange(1, 20).Draw(t, "burst")}
		clock := newClock()
		l := NewLimiter(limit, clock.Now)
		var served []time.Time
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			clock.Advance(time.Duration(rapid.Int64Range(0, int64(3*l.interval)).Draw(t, "gap")))
			_, wait := l.Take(uuid.UUID{})
			if wait > 0 && rapid.Bool().Draw(t, "waits") {
				clock.Advance(wait - 1)
				if _, early := l.Take(uuid.UUID{}); early != 1 {
					t.Fatal("served before the wait was over")
				}
				clock.Advance(1)
				_, wait = l.Take(uuid.UUID{})
				if wait > 0 {
					t.Fatal("not served after the wait")
				}
			}
			if wait == 0 {
				served = append(served, clock.Now())
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

// Callers read the clock before they take the lock, so times arrive out of order.
func TestConcurrentCallersDoNotExceedTheLimit(t *testing.T) {
	limit := RateLimit{PerSecond: 5000, Burst: 50}
	l := NewLimiter(limit, time.Now)
	var served atomic.Int64
	var takers sync.WaitGroup
	begun := time.Now()
	for range 8 * runtime.GOMAXPROCS(0) {
		takers.Go(func() {
			for range 5000 {
				if _, wait := l.Take(uuid.UUID{}); wait == 0 {
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

func TestMemoryDoesNotGrowWithTheNumberOfKeys(t *testing.T) {
	before := heapInUse()
	l := NewLimiter(RateLimit{PerSecond: 1, Burst: 2}, newClock().Now)
	for n := range 16 * shardCount * shardSize {
		l.Take(numbered(n))
	}
	if grown := heapInUse() - before; grown > 6<<20 {
		t.Errorf("the limiter takes %d bytes", grown)
	}
	runtime.KeepAlive(l)
}

func heapInUse() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestEachKeyHasItsOwnLimit(t *testing.T) {
	const burst = 3
	l := NewLimiter(RateLimit{PerSecond: 1, Burst: burst}, newClock().Now)
	for request := range 2 * burst {
		for n := range 1000 {
			if left, wait := l.Take(numbered(n)); (wait == 0) != (request < burst) || left != max(0, burst-1-request) {
				t.Fatalf("request %d of key %d: %d left, wait %s", request+1, n, left, wait)
			}
		}
	}
}

// A key does not get a new burst because other keys fill the memory.
func TestEmptyBucketsAreEvictedLast(t *testing.T) {
	clock := newClock()
	l := NewLimiter(RateLimit{PerSecond: 1, Burst: 2}, clock.Now)
	for range 2 {
		l.Take(numbered(0))
	}
	for n := 1; n <= 3*shardCount*shardSize; n++ {
		l.Take(numbered(n))
	}
	if _, wait := l.Take(numbered(0)); wait == 0 {
		t.Error("the empty bucket was evicted")
	}
	clock.Advance(time.Second)
	if _, wait := l.Take(numbered(0)); wait > 0 {
		t.Error("the key is still limited after the wait")
	}
}
