package portal

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
)

const (
	sessionContextKey = "portal.session"
	backgroundKey     = "portal.background"
)

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

// endSession ends the session of the request, if it has one that has not already ended.
func (s *site) endSession(c *gin.Context) error {
	session, err := s.currentSession(c)
	if err == nil && session != nil {
		actor := models.UserActor(session.UserID, c.ClientIP())
		err = s.Store.Sessions.End(c.Request.Context(), session.AccountID, session.ID, actor)
	}
	if errors.Is(err, models.ErrSessionNotFound) {
		return nil
	}
	return err
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

// actorOf returns the signed-in user as the actor of an activity.
func actorOf(c *gin.Context) models.Actor {
	return models.UserActor(sessionFrom(c).UserID, c.ClientIP())
}

// newClient returns the client of a sign-in. Its device is zero if the browser is unknown.
func (s *site) newClient(c *gin.Context) models.Client {
	client := clientOf(c)
	s.device.get(c, &client.Device)
	return client
}

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
