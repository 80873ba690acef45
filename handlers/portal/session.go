package portal

import (
	"errors"
	"net/http"
	"net/url"

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

// currentSession returns the session of the request, or nil for a visitor. A request that an open
// page sends by itself does not keep the session alive.
func (p *Portal) currentSession(c *gin.Context) (session *models.Session, err error) {
	var token string
	if !p.sessions.get(c, &token) {
		return nil, nil //nolint:nilnil // documented above
	}
	var found models.Session
	p.withDeadline(c, func() {
		err = p.actions.Run(func() (err error) {
			if c.GetBool(backgroundKey) {
				found, err = p.store.Sessions.Peek(c.Request.Context(), token)
			} else {
				found, err = p.store.Sessions.Find(c.Request.Context(), token, clientOf(c))
			}
			return err
		})
	})
	if errors.Is(err, models.ErrSessionNotFound) {
		return nil, nil //nolint:nilnil // documented above
	}
	return &found, err
}

// endSession ends the session in the database, if there is one. It succeeds if the session has
// already ended.
func (p *Portal) endSession(c *gin.Context, session *models.Session) error {
	if session == nil {
		return nil
	}
	err := p.store.Sessions.End(c.Request.Context(), session.AccountID, session.ID, models.UserActor(session.UserID, c.ClientIP()))
	if errors.Is(err, models.ErrSessionNotFound) {
		return nil
	}
	return err
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

// background marks the requests of a route that open pages poll.
func background(c *gin.Context) { c.Set(backgroundKey, true) }

// clientOf returns the client of the request without its device.
func clientOf(c *gin.Context) models.Client {
	return models.Client{Address: c.ClientIP(), UserAgent: c.Request.UserAgent()}
}

// actorOf returns the signed-in user as the actor of an activity.
func actorOf(c *gin.Context) models.Actor {
	return models.UserActor(sessionFrom(c).UserID, c.ClientIP())
}
