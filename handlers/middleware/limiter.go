package middleware

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// RateLimit is a rate of requests: a bucket of Burst requests that refills at PerSecond. Both are
// at least 1. The zero value means no limit.
type RateLimit struct {
	PerSecond int
	Burst     int
}

// A limiter remembers at most 65,536 buckets. Its shards are small, so that an eviction is short.
const (
	shardCount = 64
	shardSize  = 1024
)

// Limiter holds each id, such as that of an API key, to a [RateLimit]. It is safe for concurrent
// use.
//
// It counts the requests of this instance only, in memory. A count shared by all instances would
// cost a database write per request, and the limit is there to protect the database.
//
// It uses the generic cell rate algorithm (GCRA), which stores one time per id: when the id's
// bucket is full again. Each request moves that time one interval later. If the bucket would then
// take longer to fill than an empty one, the request is refused. So the result is exact even if
// concurrent requests take the lock in another order than they read the clock. With
// golang.org/x/time/rate, a request of 10,000 keys took 300 ns in place of 150, and the buckets 8.7
// MB in place of 3.5.
type Limiter struct {
	interval time.Duration // the bucket regains one request in this time
	fill     time.Duration // an empty bucket is full after this time
	window   time.Duration // see NewWindowLimiter; zero: none

	now     func() time.Time
	started time.Time

	shards [shardCount]limiterShard
}

// limiterShard holds the buckets of a part of the ids.
type limiterShard struct {
	mu     sync.Mutex
	fullAt map[uuid.UUID]time.Duration // since started, by id; a missing bucket is full
}

// NewLimiter returns a limiter whose buckets are full, for a limit that is not zero.
func NewLimiter(limit RateLimit, now func() time.Time) *Limiter {
	// Rounded up, so that the rate never exceeds the limit.
	interval := (time.Second + time.Duration(limit.PerSecond) - 1) / time.Duration(limit.PerSecond)
	return newLimiter(interval, interval*time.Duration(limit.Burst), 0, now)
}

// NewWindowLimiter returns a limiter of n requests in each window. Windows follow each other
// without gaps, and the buckets are full again when the next one begins.
func NewWindowLimiter(n int, window time.Duration, now func() time.Time) *Limiter {
	return newLimiter(window/time.Duration(n), window, window, now)
}

func newLimiter(interval, fill, window time.Duration, now func() time.Time) *Limiter {
	l := &Limiter{interval: interval, fill: fill, window: window, now: now, started: now()}
	for i := range l.shards {
		l.shards[i].fullAt = map[uuid.UUID]time.Duration{}
	}
	return l
}

// Interval returns the time in which a bucket regains one request.
func (l *Limiter) Interval() time.Duration { return l.interval }

// Take takes one request from the id's bucket and returns how many are left. If the bucket is
// empty, it takes nothing and returns the time until the next request is allowed.
func (l *Limiter) Take(id uuid.UUID) (left int, wait time.Duration) {
	now := l.now().Sub(l.started)
	// In a window, time stands still, so that a bucket regains nothing until the next one.
	from := now.Truncate(l.window)
	s := &l.shards[id[len(id)-1]%shardCount] // the last byte of most ids is random
	s.mu.Lock()
	defer s.mu.Unlock()
	fullAt, known := s.fullAt[id]
	fullAt = max(fullAt, from) + l.interval
	if fullAt-from > l.fill {
		return 0, max(fullAt-l.fill, from+l.window) - now
	}
	if !known && len(s.fullAt) == shardSize {
		s.evict()
	}
	s.fullAt[id] = fullAt
	return int((l.fill - (fullAt - from)) / l.interval), 0
}

// Return gives back a request that [Limiter.Take] took from the id's bucket.
func (l *Limiter) Return(id uuid.UUID) {
	s := &l.shards[id[len(id)-1]%shardCount]
	s.mu.Lock()
	defer s.mu.Unlock()
	if fullAt, known := s.fullAt[id]; known {
		s.fullAt[id] = fullAt - l.interval
	}
}

// evict removes the fuller half of the buckets, so that requests with other ids do not give a busy
// id a new burst. It makes a new map, because a map grows while its entries are replaced.
func (s *limiterShard) evict() {
	emptiestFirst := slices.SortedFunc(maps.Keys(s.fullAt), func(a, b uuid.UUID) int {
		return cmp.Compare(s.fullAt[b], s.fullAt[a])
	})
	kept := make(map[uuid.UUID]time.Duration, shardSize)
	for _, id := range emptiestFirst[:shardSize/2] {
		kept[id] = s.fullAt[id]
	}
	s.fullAt = kept
}
