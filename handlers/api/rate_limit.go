package api

import (
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
)

// RateLimit is how fast one API key may be used: a bucket of Burst requests that
// fills at PerSecond. Both are 1 to a million; the zero value is no limit.
type RateLimit struct {
	PerSecond int // requests a second
	Burst     int // requests at once, of a key that has rested
}

// A limiter has room for 65,536 buckets, in sets of eight. It is bounded so that
// no number of keys takes the memory of the process, and a key that has rested
// needs none of it: its bucket is full.
const (
	bucketSets = 1 << 13
	setSize    = 8
)

// rateLimiter holds each API key to a [RateLimit]. It is safe for concurrent
// use and knows keys by their ids, never by any part of the keys themselves.
//
// It counts for this one instance, in memory: counting for all of them would
// cost each request a write to the database, which is what the limit protects.
//
// A bucket is one number, the time at which it is full again (the generic cell
// rate algorithm). A request moves that time on by what it takes to fill one
// place, and is refused where it would be further away than an empty bucket is
// from full. This is exact, also where callers read the clock in another order
// than they get the lock.
//
// The id of a key leads to one set of buckets. Where all of a set belong to
// others, the fullest is given away: one that is full is not missed, and of the
// others it is the one that lets the least through. All of it is 1.5 MiB, from
// the beginning on, in which the collector has nothing to follow; a map of as
// many entries goes on growing when they are replaced.
type rateLimiter struct {
	interval time.Duration // in which one request comes back
	fill     time.Duration // in which an empty bucket is full again
	policy   string        // the limit as the RateLimit-Policy header

	now     func() time.Time
	started time.Time
	seed    maphash.Seed

	mu      sync.Mutex
	buckets [bucketSets][setSize]bucket
}

// bucket is that of one key. The zero value is nobody's.
type bucket struct {
	keyID uuid.UUID
	full  time.Duration // when it is full again, after started
}

// newRateLimiter returns a limiter whose buckets are full, or nil for the zero
// limit. A nil now is time.Now.
func newRateLimiter(limit RateLimit, now func() time.Time) *rateLimiter {
	if limit == (RateLimit{}) {
		return nil
	}
	if now == nil {
		now = time.Now
	}
	// Rounded up: never more than was asked for.
	interval := (time.Second + time.Duration(limit.PerSecond) - 1) / time.Duration(limit.PerSecond)
	window := (limit.Burst + limit.PerSecond - 1) / limit.PerSecond
	return &rateLimiter{
		interval: interval,
		fill:     interval * time.Duration(limit.Burst),
		policy:   fmt.Sprintf(`"key";q=%d;w=%d`, limit.Burst, window),
		now:      now,
		started:  now(),
		seed:     maphash.MakeSeed(),
	}
}

// take takes one request from a key's bucket and returns 0. From an empty one it
// takes nothing, and returns how long it is until there is a request again.
func (l *rateLimiter) take(keyID uuid.UUID) (wait time.Duration) {
	now := l.now().Sub(l.started)
	set := &l.buckets[maphash.Bytes(l.seed, keyID[:])%bucketSets]
	l.mu.Lock()
	defer l.mu.Unlock()
	b := find(set, keyID)
	full := max(b.full, now) + l.interval
	if wait := full - now - l.fill; wait > 0 {
		return wait
	}
	b.full = full
	return 0
}

// find returns the bucket of a key, which may have been another's until now.
func find(set *[setSize]bucket, keyID uuid.UUID) *bucket {
	fullest := &set[0]
	for i := range set {
		b := &set[i]
		if b.keyID == keyID {
			return b
		}
		if b.full < fullest.full {
			fullest = b
		}
	}
	*fullest = bucket{keyID: keyID}
	return fullest
}

// limit takes the request from the bucket of its key. It errs with a 429, which
// says when to go on, where that is empty. The headers are those of
// draft-ietf-httpapi-ratelimit-headers.
func (a *API) limit(c *gin.Context, caller models.Principal) error {
	if a.limiter == nil {
		return nil
	}
	wait := a.limiter.take(caller.KeyID)
	if wait == 0 {
		return nil
	}
	limited := problem.RateLimited(wait)
	// As the draft writes them: Header.Set would make them Ratelimit.
	headers := c.Writer.Header()
	headers["RateLimit"] = []string{`"key";r=0;t=` + limited.RetryAfterSeconds()}
	headers["RateLimit-Policy"] = []string{a.limiter.policy}
	return limited
}
