package portal

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

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
	backgroundKey     = "portal.background"
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

// currentSession returns the session of the request, or nil for a visitor. A request that an open
// page sends by itself does not keep the session alive.
func (s *site) currentSession(c *gin.Context) (session *models.Session, err error) {
	var token string
	if !s.sessionToken.get(c, &token) {
		return nil, nil //nolint:nilnil // documented above
	}
	var found models.Session
	s.withDeadline(c, func() {
		err = s.actions.Run(func() (err error) {
			if c.GetBool(backgroundKey) {
				found, err = s.Store.Sessions.Peek(c.Request.Context(), token)
			} else {
				found, err = s.Store.Sessions.Find(c.Request.Context(), token, clientOf(c))
			}
			return err
		})
	})
	if errors.Is(err, models.ErrSessionNotFound) {
		return nil, nil //nolint:nilnil // documented above
	}
	return &found, err
}

// endSession ends the session in the database, if there is one that has not already ended.
func (s *site) endSession(c *gin.Context, session *models.Session) error {
	if session == nil {
		return nil
	}
	err := s.Store.Sessions.End(c.Request.Context(), session.AccountID, session.ID, models.UserActor(session.UserID, c.ClientIP()))
	if errors.Is(err, models.ErrSessionNotFound) {
		return nil
	}
	return err
}

// recognize looks up the session for an error page outside requireSession, so that the page of a
// signed-in user keeps its navigation. After a 5xx the lookup would probably fail too, so recognize
// skips it.
func (s *site) recognize(c *gin.Context, status int) {
	if _, ok := lookupSession(c); ok || status >= http.StatusInternalServerError {
		return
	}
	session, err := s.currentSession(c)
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

// background marks the requests of a route that open pages poll.
func background(c *gin.Context) { c.Set(backgroundKey, true) }

// clientOf returns the client of the request without its device.
func clientOf(c *gin.Context) models.Client {
	return models.Client{Address: c.ClientIP(), UserAgent: c.Request.UserAgent()}
}

// owns reports whether the user of the session is an owner, who may also invite and remove people,
// change roles, and change settings that apply to everyone in the account.
func owns(session models.Session) bool { return session.Role == models.RoleOwner }

// requireOwner refuses the requests of members. It must run after requireSession.
func (s *site) requireOwner(c *gin.Context) {
	if !owns(sessionFrom(c)) {
		s.Render(c, models.ErrNotOwner)
		c.Abort()
	}
}

// actorOf returns the signed-in user as the actor of an activity.
func actorOf(c *gin.Context) models.Actor {
	return models.UserActor(sessionFrom(c).UserID, c.ClientIP())
}

// deviceAge is the lifetime of the cookie that identifies the device of a user who has signed in.
// The cookie gives no access, so sign-out keeps it.
const deviceAge = 365 * 24 * time.Hour

// newClient returns the client of a sign-in. Its device is zero if the browser is unknown.
func (s *site) newClient(c *gin.Context) models.Client {
	client := clientOf(c)
	s.device.get(c, &client.Device)
	return client
}

// returnPath returns the path to open after sign-in: the requested page or, for a form or a
// download, the page of its section.
func (s *site) returnPath(c *gin.Context) string {
	if c.Request.Method == http.MethodGet && slices.Contains(s.pages, c.FullPath()) {
		return s.destination(c.Request.URL.RequestURI())
	}
	return s.section(c)
}

// section returns the path of the page of the request's section.
func (s *site) section(c *gin.Context) string {
	section, _, _ := strings.Cut(strings.TrimPrefix(c.Request.URL.Path, "/"), "/")
	return s.destination("/" + section)
}

// maxDestination limits an address in bytes, because a cookie has 4 KiB and may hold it.
const maxDestination = 1024

// destination returns next if it is the address of a page of the portal, and the first page
// otherwise. It builds a new URL from the path and the query, so that no browser can find another
// host in it.
func (s *site) destination(next string) string {
	address, err := url.Parse(next)
	if err != nil || len(next) > maxDestination || address.IsAbs() || address.Host != "" || address.User != nil || address.RawPath != "" ||
		strings.Contains(next, "\\") || !strings.HasPrefix(next, "/") || path.Clean(address.Path) != address.Path {
		return homePath
	}
	for _, pattern := range s.pages {
		if matchesRoute(pattern, address.Path) {
			if built := (&url.URL{Path: address.Path, RawQuery: address.Query().Encode()}).String(); len(built) <= maxDestination {
				return built
			}
			return homePath
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
