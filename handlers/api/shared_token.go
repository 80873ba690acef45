package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
)

// sharedToken is the hash of a token that callers share with the configuration. Guesses are not
// limited: a token has at least 32 bytes.
type sharedToken [sha256.Size]byte

// newSharedToken returns nil for an empty token.
func newSharedToken(token string) *sharedToken {
	if token == "" {
		return nil
	}
	hash := sharedToken(sha256.Sum256([]byte(token)))
	return &hash
}

// check accepts one Authorization header with the token after Bearer or, if bare, also alone. For
// any other it returns a 401, with these messages for no header and for a wrong one.
func (t *sharedToken) check(c *gin.Context, bare bool, missing, wrong string) error {
	values := c.Request.Header.Values("Authorization")
	if len(values) == 1 {
		scheme, token, _ := strings.Cut(values[0], " ")
		isBearer := strings.EqualFold(scheme, "Bearer")
		if isBearer && t.is(strings.Trim(token, " ")) || bare && t.is(values[0]) {
			return nil
		}
	}
	setChallenge(c, len(values) > 0)
	if len(values) == 0 {
		return problem.Unauthorized(problem.ReasonMissing, missing)
	}
	return problem.Unauthorized(problem.ReasonUnknown, wrong)
}

// is reports whether text is the token, in a time that does not depend on it.
func (t *sharedToken) is(text string) bool {
	hash := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(hash[:], t[:]) == 1
}
