package portal

import (
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gorilla/securecookie"
)

// A flash message reports the result of an action on the next full page, after a redirect. A signed
// cookie carries the text. Anyone can read it in the browser, so it never holds a secret.
const (
	flashCookie = "flash"
	// flashAge limits how late a message can appear after an interrupted redirect.
	flashAge = time.Minute
)

// setFlash stores a message for the next full page. A message that does not fit into a cookie is
// dropped, and the error is logged.
func (p *Portal) setFlash(c *gin.Context, message string) {
	value, err := securecookie.EncodeMulti(flashSubject(c), message, p.flashes...)
	if err != nil {
		_ = c.Error(err)
		return
	}
	p.cookies.set(c.Writer, flashCookie, value, int(flashAge/time.Second))
}

// takeFlash returns the stored message and deletes it. It returns "" if there is none, or if it is
// forged, too old, or another session's.
func (p *Portal) takeFlash(c *gin.Context) string {
	cookie, err := c.Request.Cookie(p.cookies.name(flashCookie))
	if err != nil {
		return ""
	}
	p.cookies.set(c.Writer, flashCookie, "", -1)
	var message string
	if err := securecookie.DecodeMulti(flashSubject(c), cookie.Value, &message, p.flashes...); err != nil {
		return ""
	}
	return message
}

// flashSubject is part of the signature, so that a message is shown only in the session it was
// stored in: on a shared browser the next user must not read it.
func flashSubject(c *gin.Context) string {
	session, _ := lookupSession(c)
	return flashCookie + " " + session.ID.String()
}
