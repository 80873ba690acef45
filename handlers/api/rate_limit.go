package api

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models/usage"
)

// accountTokens is how many times the limit of one key all widget tokens of an account have
// together: with the default, 1,000 requests a second. A gateway asks once for each connection, so
// no usual traffic comes near it.
const accountTokens = 20

// rateLimiter holds callers of one kind to a limit. Nil means no limit.
type rateLimiter struct {
	*middleware.Limiter

	name   string // of the kind, in the headers
	things string // in the message
	low    int    // responses have the rate limit headers if fewer requests are left
	policy string // value of the RateLimit-Policy header
}

// newRateLimiter returns a limiter, or nil for the zero limit.
func newRateLimiter(name, things string, limit middleware.RateLimit, now func() time.Time) *rateLimiter {
	if limit == (middleware.RateLimit{}) {
		return nil
	}
	window := (limit.Burst + limit.PerSecond - 1) / limit.PerSecond
	return &rateLimiter{
		Limiter: middleware.NewLimiter(limit, now), name: name, things: things, low: (limit.Burst + 4) / 5,
		policy: fmt.Sprintf("%q;q=%d;w=%d", name, limit.Burst, window),
	}
}

// newWindowLimiter returns a limiter of n requests in each window.
func newWindowLimiter(name, things string, n int, window time.Duration, now func() time.Time) *rateLimiter {
	return &rateLimiter{
		Limiter: middleware.NewWindowLimiter(n, window, now), name: name, things: things,
		policy: fmt.Sprintf("%q;q=%d;w=%d", name, n, int(window.Seconds())),
	}
}

// limit takes one request from the bucket of the caller with this id. If the bucket is empty, it
// returns a 429. It sets the headers of draft-ietf-httpapi-ratelimit-headers on a 429, and on every
// response while less than a fifth of the burst is left.
func (l *rateLimiter) limit(c *gin.Context, id uuid.UUID) error {
	if l == nil {
		return nil
	}
	left, wait := l.Take(id)
	if wait == 0 && left >= l.low {
		return nil
	}
	limited := problem.RateLimited(l.things, cmp.Or(wait, l.Interval()))
	// Set in the map, because Header.Set would change the name to Ratelimit.
	headers := c.Writer.Header()
	headers["RateLimit"] = []string{fmt.Sprintf("%q;r=%d;t=%s", l.name, left, limited.RetryAfterSeconds())}
	headers["RateLimit-Policy"] = []string{l.policy}
	if wait == 0 {
		return nil
	}
	return limited
}

// giveBack returns a request that limit has taken from the bucket of the caller with this id.
func (l *rateLimiter) giveBack(id uuid.UUID) {
	if l != nil {
		l.Return(id)
	}
}

// addressID returns the id of the bucket of the network of a client's address. All unknown
// addresses share one.
func addressID(client middleware.Client) uuid.UUID {
	hash := sha256.Sum256([]byte(usage.Network(client.Nearest()).String()))
	return uuid.UUID(hash[:16])
}
