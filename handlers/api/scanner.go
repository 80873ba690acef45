package api

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"time"

	"github.com/gin-gonic/gin"

	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/handlers/publickeys"
	"portal/models/keyset"
	"portal/models/value"
)

// The headers of a report of GitHub's secret scanning.
const (
	scannerIdentifier = "Github-Public-Key-Identifier"
	scannerSignature  = "Github-Public-Key-Signature"
)

// scanner is GitHub's secret scanning, which signs its reports.
type scanner struct {
	keys *publickeys.Keys[*ecdsa.PublicKey]
}

func newScanner(d deps.Deps) *scanner {
	return &scanner{keys: publickeys.New(publickeys.Config[*ecdsa.PublicKey]{
		URL: d.GitHubKeysURL,
		Parse: func(ctx context.Context, body []byte) (map[string]*ecdsa.PublicKey, error) {
			keys, skipped, err := keyset.ParseScanner(body)
			keyset.LogSkipped(ctx, d.Logger, "GitHub", skipped)
			return keys, err
		},
		Logger: d.Logger, Now: d.Now,
	})}
}

// oneHeader returns the value of a header that must occur once, or a 400.
func oneHeader(c *gin.Context, name string) (string, error) {
	values := c.Request.Header.Values(name)
	if len(values) != 1 || values[0] == "" {
		return "", problem.InvalidRequest("The header " + name + " must occur exactly once.")
	}
	return values[0], nil
}

// key returns the public key with this identifier. The error is a 400 for an unknown identifier, or
// a 503 if no keys have been fetched yet, or new ones cannot be fetched. Unknown identifiers count
// for the network of the client.
func (s *scanner) key(c *gin.Context, id string) (*ecdsa.PublicKey, error) {
	key, err := s.keys.Get(c.Request.Context(), id, addressID(middleware.ClientOf(c)).String())
	missing, isMissing := errors.AsType[*publickeys.MissingError](err)
	unconfirmed, isUnconfirmed := errors.AsType[*publickeys.UnconfirmedError](err)
	switch {
	case isMissing:
		return nil, keysMissing(missing.RetryAfter, err)
	case isUnconfirmed && unconfirmed.Away:
		return nil, keysMissing(unconfirmed.RetryAfter, err)
	case errors.Is(err, publickeys.ErrUnknown):
		return nil, problem.InvalidRequest("GitHub has no public key with this identifier.")
	case err != nil:
		return nil, problem.Unavailable(fmt.Errorf("%w report leaked keys: %w", value.ErrBusy, err))
	}
	return key, nil
}

// keysMissing returns the 503 while the public keys of the scanner cannot be fetched.
func keysMissing(retryAfter time.Duration, cause error) error {
	unavailable := problem.Unavailable(cause)
	unavailable.RetryAfter = retryAfter
	return unavailable
}
