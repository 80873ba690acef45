package portal

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/models"
)

const (
	homePath   = "/api-keys"
	signInPath = "/login"
	// sessionPath is polled by every page of a signed-in user.
	sessionPath = "/session"

	sessionContextKey = "portal.session"
)

// requireSession redirects visitors to the sign-in page, which leads them back afterwards.
func (p *Portal) requireSession(c *gin.Context) {
	session, err := p.currentSession(c)
	switch {
	case err != nil:
		p.Render(c, err)
		c.Abort()
	case session == nil:
		notice := ""
		if interrupted(c) {
			notice = "Your session has ended. Your changes were not saved."
		}
		query := url.Values{"next": {p.returnPath(c)}}
		if err := p.redirectWith(c, signInPath+"?"+query.Encode(), notice); err != nil {
			p.Render(c, err)
		}
		c.Abort()
	default:
		c.Set(sessionContextKey, *session)
		middleware.SetCaller(c, middleware.Caller{Account: session.AccountID, User: session.UserID})
		if mustSetUp(c, *session) {
			if err := p.redirect(c, secondFactorPath); err != nil {
				p.Render(c, err)
			}
			c.Abort()
		}
	}
}

// currentSession returns the session of the request, or nil for a visitor.
func (p *Portal) currentSession(c *gin.Context) (session *models.Session, err error) {
	p.withDeadline(c, func() {
		err = p.actions.Run(func() error {
			stored, err := p.sessions.Get(withClient(c), p.sessions.name)
			session = storedSession(stored)
			return err
		})
	})
	return session, err
}

// recognize looks up the session for an error page outside requireSession, so that the page of a
// signed-in user keeps its navigation. After a 5xx the lookup would probably fail too, so recognize
// skips it.
func (p *Portal) recognize(c *gin.Context, status int) {
	if _, ok := lookupSession(c); ok || status >= http.StatusInternalServerError {
		return
	}
	session, err := p.currentSession(c)
	if err != nil {
		_ = c.Error(err) // the page works without a session
	} else if session != nil {
		c.Set(sessionContextKey, *session)
	}
}

// lookupSession returns the session that requireSession or recognize has found, if any.
func lookupSession(c *gin.Context) (models.Session, bool) {
	value, _ := c.Get(sessionContextKey)
	session, ok := value.(models.Session)
	return session, ok
}

// sessionFrom returns the signed-in user's session. It panics outside requireSession.
func sessionFrom(c *gin.Context) models.Session {
	return c.MustGet(sessionContextKey).(models.Session)
}

// actorOf returns the signed-in user as the actor of an activity.
func actorOf(c *gin.Context) models.Actor {
	return models.UserActor(sessionFrom(c).UserID, c.ClientIP())
}

// returnPath returns the path to open after sign-in. It is the requested page. For a form or a
// download it is the page of its section.
func (p *Portal) returnPath(c *gin.Context) string {
	if c.Request.Method == http.MethodGet && slices.Contains(p.pages, c.FullPath()) {
		return p.destination(c.Request.URL.RequestURI())
	}
	return p.section(c)
}

// section returns the path of the page of the request's section.
func (p *Portal) section(c *gin.Context) string {
	section, _, _ := strings.Cut(strings.TrimPrefix(c.Request.URL.Path, "/"), "/")
	return p.destination("/" + section)
}

// destination returns next if it is the address of a page of the portal, and the first page
// otherwise. It builds a new URL from the path and the query, so that no browser can find another
// host in it.
func (p *Portal) destination(next string) string {
	address, err := url.Parse(next)
	if err != nil || address.IsAbs() || address.Host != "" || address.User != nil || address.RawPath != "" ||
		strings.Contains(next, "\\") || !strings.HasPrefix(next, "/") || path.Clean(address.Path) != address.Path {
		return homePath
	}
	for _, pattern := range p.pages {
		if matchesRoute(pattern, address.Path) {
			return (&url.URL{Path: address.Path, RawQuery: address.Query().Encode()}).String()
		}
	}
	return homePath
}

// matchesRoute reports whether path matches the pattern of a route, where ":id" matches an id.
func matchesRoute(pattern, path string) bool {
	wanted, segments := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(wanted, segments, func(want, segment string) bool {
		if want == ":id" {
			_, ok := parseID(segment)
			return ok
		}
		return want == segment
	})
}
