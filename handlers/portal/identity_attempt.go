package portal

import (
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/gorilla/securecookie"

	"portal/handlers/portal/identity"
)

// A signed cookie holds the sign-in at the provider that this browser has begun. Only this browser
// can complete it, so nobody can be signed in as another person by a link.
const (
	attemptCookie = "oidc"
	// attemptAge is how long the user may take at the provider.
	attemptAge = 10 * time.Minute
)

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
	value, err := securecookie.EncodeMulti(attemptCookie, begun, p.attempts...)
	if err != nil {
		return "", err
	}
	p.cookies.set(c.Writer, attemptCookie, value, int(attemptAge/time.Second))
	return address, nil
}

// attemptOf returns the attempt that the browser has begun. It is zero if there is none, or if it
// is forged or too old.
func (p *Portal) attemptOf(c *gin.Context) attempt {
	cookie, err := c.Request.Cookie(p.cookies.name(attemptCookie))
	if err != nil {
		return attempt{}
	}
	var begun attempt
	if err := securecookie.DecodeMulti(attemptCookie, cookie.Value, &begun, p.attempts...); err != nil {
		return attempt{}
	}
	return begun
}

func (p *Portal) endAttempt(c *gin.Context) { p.cookies.set(c.Writer, attemptCookie, "", -1) }
