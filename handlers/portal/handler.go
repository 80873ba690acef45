package portal

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models"
)

// handler handles one action. [site.handle] renders its error.
type handler func(*gin.Context) error

// handle adapts a handler to gin. If the handler returns an error after it has written a response,
// handle panics: a second response would be part of the first.
func (s *site) handle(h handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		err := parseForm(c)
		if _, ok := c.Params.Get("id"); ok && err == nil && idOf(c) == uuid.Nil {
			err = problem.NotFound() // as for an unknown id
		}
		if err == nil {
			err = s.actions.Run(func() error { return h(c) })
		}
		if err != nil && c.Writer.Written() {
			panic(fmt.Errorf("an error after the response: %w", err))
		}
		if err != nil {
			s.Render(c, err)
		}
	}
}

// limitChanges refuses the change of a user who has made too many.
func (s *site) limitChanges(c *gin.Context) {
	if _, wait := s.changes.Take(sessionFrom(c).UserID); wait > 0 {
		s.Render(c, problem.TooManyChanges(wait))
		c.Abort()
	}
}

// deadline is [site.withDeadline] for the handlers after it.
func (s *site) deadline(c *gin.Context) { s.withDeadline(c, c.Next) }

// plainAddress redirects an address that ends in "?" to the same without it. Browsers add the "?"
// when they send a form without fields, such as Done.
func (s *site) plainAddress(c *gin.Context) {
	if c.Request.URL.ForceQuery {
		_ = s.redirect(c, c.Request.URL.EscapedPath())
		c.Abort()
	}
}

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
		if session.FactorDue && !slices.Contains(setUpPaths, c.FullPath()) {
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

// setUpPaths are the routes that stay open to a user who must set up a second factor first.
var setUpPaths = []string{
	secondFactorPath, passkeysPath, passkeysPath + "/options", "/account/authenticator", "/account/authenticator/confirmation",
}
