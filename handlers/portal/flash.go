package portal

import (
	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
)

// flash is a message that reports the result of an action on the next full page, after a redirect.
// A cookie carries it, so it never holds a secret.
type flash struct {
	Session uuid.UUID // on a shared browser the next user must not read the message
	Message string
}

// setFlash stores a message for the next full page. A message that does not fit into a cookie is
// dropped, and the error is logged.
func (s *site) setFlash(c *gin.Context, message string) {
	session, _ := lookupSession(c)
	if err := s.flash.set(c, flash{session.ID, message}); err != nil {
		_ = c.Error(err)
	}
}

// takeFlash deletes the stored message and returns it, or "" if there is none or it is another
// session's.
func (s *site) takeFlash(c *gin.Context) string {
	var stored flash
	if !s.flash.get(c, &stored) {
		return ""
	}
	s.flash.drop(c)
	if session, _ := lookupSession(c); session.ID != stored.Session {
		return ""
	}
	return stored.Message
}
