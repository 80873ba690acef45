package api

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"portal/handlers/deps"
	"portal/handlers/middleware"
)

// maxQueries limits how many requests use the database at once, besides authentication.
const maxQueries = 256

// site has what all endpoints need.
type site struct {
	deps.Deps

	queries  middleware.Slots
	refusals *prometheus.CounterVec
}

// withTimeout returns the request's context with the time limit of the database, less the time that
// the request has already waited for the database. Handlers call it after they read the body, so
// that a slow client does not use up the limit.
func (s *site) withTimeout(c *gin.Context, waited time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request.Context(), s.Store.Timeout()-waited)
}

// query calls f in a slot of the queries, within the time limit of the database, less the time that
// the request has already waited for the database.
func query[T any](s *site, c *gin.Context, waited time.Duration, f func(context.Context) (T, error)) (found T, err error) {
	ctx, cancel := s.withTimeout(c, waited)
	defer cancel()
	err = s.queries.Run(func() (err error) {
		found, err = f(ctx)
		return err
	})
	return found, err
}
