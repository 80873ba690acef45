package api

import (
	"context"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"portal/handlers/middleware"
	"portal/models"
	"portal/models/livekit"
	"portal/models/widget"
)

// maxQueries limits how many requests use the database at once, besides authentication.
const maxQueries = 256

// API has the handlers of the JSON API.
type API struct {
	store   *models.Store
	tokens  *widget.Tokens
	liveKit *livekit.Server // nil: off

	// Nil: no limit.
	keyLimit, tokenLimit, accountLimit *rateLimiter

	operator   *sharedToken // nil: the operator API is off
	signInLink func(token string) string

	leaks *leakDoors

	trusted  []netip.Prefix // proxies
	refusals *prometheus.CounterVec
	queries  middleware.Slots
	signing  chan struct{}   // holds an entry for each request that signs
	stopping <-chan struct{} // closed when the server begins to stop
}

// withTimeout returns the request's context with the time limit of the database, less the time that
// the request has already waited for the database. Handlers call it after they read the body, so
// that a slow client does not use up the limit.
func (a *API) withTimeout(c *gin.Context, waited time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request.Context(), a.store.Timeout()-waited)
}

// query calls f in a slot of a.queries, within the time limit of the database, less the time that
// the request has already waited for the database.
func query[T any](a *API, c *gin.Context, waited time.Duration, f func(context.Context) (T, error)) (found T, err error) {
	ctx, cancel := a.withTimeout(c, waited)
	defer cancel()
	err = a.queries.Run(func() (err error) {
		found, err = f(ctx)
		return err
	})
	return found, err
}
