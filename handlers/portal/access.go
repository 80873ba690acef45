package portal

import (
	"net/url"
	"slices"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/models"
)

// requireSession redirects visitors to the sign-in page, which leads them back afterwards.
func (s *site) requireSession(c *gin.Context) {
	session, err := s.currentSession(c)
	switch {
	case err != nil:
		s.Render(c, err)
		c.Abort()
	case session == nil:
		notice := ""
		if interrupted(c) {
			notice = "Your session has ended. Your changes were not saved."
		}
		query := url.Values{"next": {s.returnPath(c)}}
		_ = s.redirectWith(c, signInPath+"?"+query.Encode(), notice)
		c.Abort()
	default:
		c.Set(sessionContextKey, *session)
		middleware.SetCaller(c, middleware.Caller{Account: session.AccountID, User: session.UserID})
		if mustSetUp(c, *session) {
			_ = s.redirect(c, secondFactorPath)
			c.Abort()
		}
	}
}

// requireOwner refuses the requests of members. It must run after requireSession.
func (s *site) requireOwner(c *gin.Context) {
	if !owns(sessionFrom(c)) {
		s.Render(c, models.ErrNotOwner)
		c.Abort()
	}
}

// mustSetUp reports whether the request must wait until the user has set up a second factor.
func mustSetUp(c *gin.Context, session models.Session) bool {
	return session.FactorDue && !slices.Contains(setUpPaths, c.FullPath())
}

// setUpPaths are the routes that stay open to a user who must set up a second factor first.
var setUpPaths = []string{
	secondFactorPath, passkeysPath, passkeysPath + "/options", "/account/authenticator", "/account/authenticator/confirmation",
}
