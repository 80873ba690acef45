package portal

import (
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
)

// flashAge limits how late a flash message can appear after an interrupted redirect.
const flashAge = time.Minute

// flash is a message that reports the result of an action on the next full page, after a redirect.
// A cookie carries it, so it never holds a secret.
type flash struct {
	Session uuid.UUID // on a shared browser the next user must not read the message
	Message string
}

// setFlash stores a message for the next full page. A message that does not fit into a cookie is
// dropped, and the error is logged.
func (p *Portal) setFlash(c *gin.Context, message string) {
	session, _ := lookupSession(c)
	if err := p.flash.set(c, flash{session.ID, message}); err != nil {
		_ = c.Error(err)
	}
}

// takeFlash returns the stored message and deletes it. It returns "" if there is none, or if it is
// another session's.
func (p *Portal) takeFlash(c *gin.Context) string {
	var stored flash
	if !p.flash.get(c, &stored) {
		return ""
	}
	p.flash.drop(c)
	if session, _ := lookupSession(c); session.ID != stored.Session {
		return ""
	}
	return stored.Message
}
