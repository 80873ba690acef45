package api

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
)

// RateLimit is the request rate of one API key: a bucket of Burst requests that refills at
// PerSecond. Both are 1 to 1,000,000. The zero value means no limit.
type RateLimit struct {
	PerSecond int
	Burst     int
}

// A limiter remembers at most 65,536 buckets. Its shards are small, so that an eviction is short.
const (
	shardCount = 64
	shardSize  = 1024
)

// rateLimiter holds each API key to a [RateLimit]. It is safe for concurrent use.
//
// It counts the requests of this instance only, in memory. A count shared by all instances would
// cost a database write per request, and the limit is there to protect the database.
//
// It uses the generic cell rate algorithm (GCRA), which stores one time per key: when the key's
// bucket is full again. Each request moves that time one interval later. A request is refused if
// the bucket would then take longer to fill than an empty one. The result is exact even if
// concurrent requests take the lock in another order than they read the clock.
type rateLimiter struct {
	interval time.Duration // the bucket regains one request in this time
	fill     time.Duration // an empty bucket is full after this time
	low      int           // responses have the rate limit headers if fewer requests are left
	policy   string        // value of the RateLimit-Policy header

	now     func() time.Time
	started time.Time

	shards [shardCount]rateLimitShard
}

// rateLimitShard holds the buckets of a part of the keys.
type rateLimitShard struct {
	mu     sync.Mutex
	fullAt map[uuid.UUID]time.Duration // since started, by key id; a missing bucket is full
}

// newRateLimiter returns a limiter whose buckets are full, or nil for the zero limit. A nil now
// means time.Now.
func newRateLimiter(limit RateLimit, now func() time.Time) *rateLimiter {
	if limit == (RateLimit{}) {
		return nil
	}
	if now == nil {
		now = time.Now
	}
	// Rounded up, so that the rate never exceeds the limit.
	interval := (time.Second + time.Duration(limit.PerSecond) - 1) / time.Duration(limit.PerSecond)
	window := (limit.Burst + limit.PerSecond - 1) / limit.PerSecond
	l := &rateLimiter{
		interval: interval,
		fill:     interval * time.Duration(limit.Burst),
		low:      (limit.Burst + 4) / 5,
		policy:   fmt.Sprintf(`"key";q=%d;w=%d`, limit.Burst, window),
		now:      now,
		started:  now(),
	}
	for i := range l.shards {
		l.shards[i].fullAt = map[uuid.UUID]time.Duration{}
	}
	return l
}

// take takes one request from the key's bucket and returns how many are left. If the bucket is
// empty, it takes nothing and returns the time until the next request is allowed.
func (l *rateLimiter) take(keyID uuid.UUID) (left int, wait time.Duration) {
	now := l.now().Sub(l.started)
	s := &l.shards[keyID[len(keyID)-1]%shardCount] // the last byte of an id is random
	s.mu.Lock()
	defer s.mu.Unlock()
	fullAt, known := s.fullAt[keyID]
	fullAt = max(fullAt, now) + l.interval
	if wait := fullAt - now - l.fill; wait > 0 {
		return 0, wait
	}
	if !known && len(s.fullAt) == shardSize {
		s.evict()
	}
	s.fullAt[keyID] = fullAt
	return int((l.fill - (fullAt - now)) / l.interval), 0
}

// evict removes the fuller half of the buckets, so that requests with other keys do not give a busy
// key a new burst. It makes a new map, because a map grows while its entries are replaced.
func (s *rateLimitShard) evict() {
	emptiestFirst := slices.SortedFunc(maps.Keys(s.fullAt), func(a, b uuid.UUID) int {
		return cmp.Compare(s.fullAt[b], s.fullAt[a])
	})
	kept := make(map[uuid.UUID]time.Duration, shardSize)
	for _, keyID := range emptiestFirst[:shardSize/2] {
		kept[keyID] = s.fullAt[keyID]
	}
	s.fullAt = kept
}

// limit takes one request from the bucket of the caller's key. If the bucket is empty, it returns
// a 429. It sets the headers of draft-ietf-httpapi-ratelimit-headers on a 429, and on every
// response while less than a fifth of the burst is left.
func (a *API) limit(c *gin.Context, caller models.Principal) error {
	if a.limiter == nil {
		return nil
	}
	left, wait := a.limiter.take(caller.KeyID)
	if wait == 0 && left >= a.limiter.low {
		return nil
	}
	limited := problem.RateLimited(max(wait, a.limiter.interval))
	// Set in the map, because Header.Set would change the name to Ratelimit.
	headers := c.Writer.Header()
	headers["RateLimit"] = []string{fmt.Sprintf(`"key";r=%d;t=%s`, left, limited.RetryAfterSeconds())}
	headers["RateLimit-Policy"] = []string{a.limiter.policy}
	if wait == 0 {
		return nil
	}
	return limited
}
