package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models/workload"
)

// maxQueries limits how many requests use the database at once, besides authentication.
const maxQueries = 256

// site has what all endpoints need.
type site struct {
	now      func() time.Time
	timeout  time.Duration    // of each use of the database
	issuers  workload.Issuers // whose tokens can stand for a key
	callsOn  bool             // there is a LiveKit server
	queries  middleware.Slots
	refusals *prometheus.CounterVec
}

// withTimeout returns the request's context with the time limit of the database, less the time that
// the request has already waited for the database. Handlers call it after they read the body, so
// that a slow client does not use up the limit.
func (s *site) withTimeout(c *gin.Context, waited time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request.Context(), s.timeout-waited)
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

// refusalUnavailable is the label value for credentials that the database could not check.
const refusalUnavailable = "unavailable"

// newRefusals returns the metric of refused API requests, with all its label values.
func newRefusals(registry prometheus.Registerer) *prometheus.CounterVec {
	refusals := promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "portal_api_refusals_total",
		Help: "API requests refused with a 401 or 403, by X-Error-Reason; unavailable means that the database did not answer.",
	}, []string{"reason"})
	for _, reason := range []string{
		problem.ReasonMissing, problem.ReasonScheme, problem.ReasonPrefix, problem.ReasonMalformed,
		problem.ReasonUnknown, problem.ReasonRevoked, problem.ReasonExpired, problem.ReasonAccountDisabled,
		problem.ReasonAgent, problem.ReasonAgentPaused, problem.ReasonAddress, problem.ReasonAccess,
		problem.ReasonTokenMissing, problem.ReasonTokenInvalid, problem.ReasonTokenExpired, problem.ReasonTokenRevoked,
		problem.ReasonTrustChanged,
		refusalUnavailable,
	} {
		refusals.WithLabelValues(reason)
	}
	return refusals
}

// countRefusal counts a request whose credentials were refused, do not suffice or could not be
// checked, and reports whether the response is a 401.
func (s *site) countRefusal(err error) bool {
	p := problem.From(err)
	reason := p.Reason
	if p.Status >= http.StatusInternalServerError {
		reason = refusalUnavailable
	}
	s.refusals.WithLabelValues(reason).Inc()
	return p.Status == http.StatusUnauthorized
}
