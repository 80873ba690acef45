package portal

import (
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/portal/identity"
)

// attemptAge is how long the user may take at the provider. A cookie holds the sign-in that this
// browser has begun. Only this browser can complete it, so nobody can be signed in as another
// person by a link.
const attemptAge = 10 * time.Minute

// purpose is the reason for a sign-in at the provider.
type purpose int

const (
	signsIn  purpose = iota // as the user of the identity
	connects                // the identity to the user of a session
	joins                   // as a new user with an invitation
)

// attempt is a sign-in at the provider that has begun.
type attempt struct {
	identity.Attempt

	Purpose    purpose
	Next       string    // path to open after a sign-in
	Session    uuid.UUID // in which to connect the identity
	Invitation string    // token of the invitation
}

// beginAttempt stores a new attempt in the browser and returns the provider's address. It replaces
// an older attempt.
func (p *Portal) beginAttempt(c *gin.Context, begun attempt, again bool) (address string, err error) {
	address, begun.Attempt, err = p.provider.Begin(c.Request.Context(), again)
	if err != nil {
		return "", err
	}
	return address, p.attempts.set(c, begun)
}

// attemptOf returns the attempt that the browser has begun. It is zero if there is none, or if it
// is forged or too old.
func (p *Portal) attemptOf(c *gin.Context) (begun attempt) {
	p.attempts.get(c, &begun)
	return begun
}
