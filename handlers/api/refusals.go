package api

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"portal/models"
	"portal/models/widget"
)

// refusalReasons maps errors to the label values of the metric of refusals.
var refusalReasons = []struct {
	err    error
	reason string
}{
	{models.ErrKeyMissingPrefix, "missing_prefix"},
	{models.ErrKeyMalformed, "malformed"},
	{models.ErrKeyUnknown, "unknown"},
	{models.ErrKeyRevoked, "revoked"},
	{models.ErrAccountDisabled, "account_disabled"},
	{widget.ErrExpired, "token_expired"},
	{widget.ErrInvalid, "token_invalid"},
	{models.ErrAgentNotFound, "agent_removed"},
	{models.ErrUnavailable, "unavailable"},
}

// noBearerKey is the reason for a request without exactly one Bearer credential.
const noBearerKey = "no_bearer_key"

// newRefusals returns the metric of refused API requests, with all its label values.
func newRefusals() *prometheus.CounterVec {
	refusals := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "portal_api_refusals_total",
		Help: "API requests refused at authentication, by reason; unavailable means that the database did not answer.",
	}, []string{"reason"})
	refusals.WithLabelValues(noBearerKey)
	for _, known := range refusalReasons {
		refusals.WithLabelValues(known.reason)
	}
	return refusals
}

func refusalReason(err error) string {
	for _, known := range refusalReasons {
		if errors.Is(err, known.err) {
			return known.reason
		}
	}
	return noBearerKey
}
