package portal

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"portal/models"
)

const (
	homePath   = "/api-keys"
	signInPath = "/login"

	sessionKey = "portal.session"
)

// requireSession lets those pass who have signed in, and sends everyone else to
// do so and back.
func (p *Portal) requireSession(c *gin.Context) {
	session, err := p.currentSession(c)
	switch {
	case err != nil:
		p.Render(c, err)
		c.Abort()
	case session == nil:
		notice := ""
		if interrupted(c) {
			notice = "Your session has ended. Nothing was changed."
		}
		query := url.Values{"next": {p.wayBack(c)}}
		if err := p.redirectWith(c, signInPath+"?"+query.Encode(), notice); err != nil {
			p.Render(c, err)
		}
		c.Abort()
	default:
		c.Set(sessionKey, *session)
	}
}

// inTime gives h the time that the database has, before handlers that bound
// their own.
func (p *Portal) inTime(h gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		whole := c.Request.Context()
		ctx, cancel := context.WithTimeout(whole, models.Timeout)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		h(c)
		c.Request = c.Request.WithContext(whole)
	}
}

// currentSession returns the session of whoever asks, or nil for a visitor.
func (p *Portal) currentSession(c *gin.Context) (*models.Session, error) {
	session, err := p.sessions.Get(withClient(c), p.sessions.name)
	if err != nil {
		return nil, err
	}
	return stayOf(session), nil
}

// recognize finds out who is told of an error, where nothing has asked for that
// before: who has signed in keeps the navigation. After a failure of ours it does
// not ask, for that would most likely fail as well.
func (p *Portal) recognize(c *gin.Context, status int) {
	if _, known := sessionOf(c); known || status >= http.StatusInternalServerError {
		return
	}
	p.inTime(func(c *gin.Context) {
		session, err := p.currentSession(c)
		if err != nil {
			_ = c.Error(err) // the page is as good without
		} else if session != nil {
			c.Set(sessionKey, *session)
		}
	})(c)
}

// sessionOf returns the session that [Portal.requireSession] or
// [Portal.recognize] has found, if there is one.
func sessionOf(c *gin.Context) (models.Session, bool) {
	value, _ := c.Get(sessionKey)
	session, ok := value.(models.Session)
	return session, ok
}

// customer is who has signed in; only actions behind requireSession ask.
func customer(c *gin.Context) models.Session {
	return c.MustGet(sessionKey).(models.Session)
}

// actorOf is who has signed in, for the record.
func actorOf(c *gin.Context) models.Actor {
	return models.UserActor(customer(c).UserID, c.ClientIP())
}

// wayBack is where a visitor goes on after signing in: the page that was asked
// for, or the page whose form was sent or whose file was asked for.
func (p *Portal) wayBack(c *gin.Context) string {
	if c.Request.Method == http.MethodGet && slices.Contains(p.pages, c.FullPath()) {
		return p.destination(c.Request.URL.RequestURI())
	}
	section, _, _ := strings.Cut(strings.TrimPrefix(c.Request.URL.Path, "/"), "/")
	return p.destination("/" + section)
}

// destination returns next if it is the address of one of the portal's pages,
// and the first page otherwise. What it returns is put together anew, so that a
// browser cannot read it as anything else.
func (p *Portal) destination(next string) string {
	address, err := url.Parse(next)
	if err != nil || address.IsAbs() || address.Host != "" || address.User != nil || address.RawPath != "" ||
		strings.Contains(next, "\\") || !strings.HasPrefix(next, "/") || path.Clean(address.Path) != address.Path {
		return homePath
	}
	for _, pattern := range p.pages {
		if matches(pattern, address.Path) {
			return (&url.URL{Path: address.Path, RawQuery: address.Query().Encode()}).String()
		}
	}
	return homePath
}

// matches compares an address with the pattern of a route, in which ":id" stands
// for an id.
func matches(pattern, address string) bool {
	wanted, segments := strings.Split(pattern, "/"), strings.Split(address, "/")
	if len(wanted) != len(segments) {
		return false
	}
	for i, segment := range segments {
		if wanted[i] == ":id" {
			if _, ok := parseID(segment); !ok {
				return false
			}
		} else if wanted[i] != segment {
			return false
		}
	}
	return true
}
