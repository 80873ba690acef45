package api

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"portal/handlers/problem"
)

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
		problem.ReasonAgent, problem.ReasonAddress,
		problem.ReasonTokenMissing, problem.ReasonTokenInvalid, problem.ReasonTokenExpired, problem.ReasonTokenRevoked,
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
