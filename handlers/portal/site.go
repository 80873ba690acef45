package portal

import (
	"context"

	"github.com/gin-gonic/gin"

	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/templates"
)

// maxActions limits how many actions run at once.
const maxActions = 256

// changeRate limits the changes of one user on this instance, because each adds a row to the
// activity log for 400 days. Generating and revoking keys does not count: nothing may delay a
// revocation, and an account has at most 100 active keys.
var changeRate = middleware.RateLimit{PerSecond: 1, Burst: 120}

// site has what every page needs: the dependencies, the cookies and the templates.
type site struct {
	deps.Deps

	sessionToken cookie
	flash        cookie
	revealed     cookie
	device       cookie
	templates    *templates.Templates
	actions      middleware.Slots
	changes      *middleware.Limiter // of each user
	pages        []string            // patterns of the paths that sign-in may lead back to
}

// url returns the public URL of a path.
func (s *site) url(path ...string) string { return s.BaseURL.JoinPath(path...).String() }

// withDeadline calls f while the request's context has the database's time limit.
func (s *site) withDeadline(c *gin.Context, f func()) {
	whole := c.Request.Context()
	ctx, cancel := context.WithTimeout(whole, s.Store.Timeout())
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	f()
	c.Request = c.Request.WithContext(whole)
}
