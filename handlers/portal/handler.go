package portal

import (
	"fmt"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models/value"
)

// handler handles one action. [site.handle] renders its error.
type handler func(*gin.Context) error

// handle adapts a handler to gin. The handler runs in a slot and its response is written after it,
// because a client may read slowly. With nil slots, the handler writes for itself.
func (s *site) handle(slots middleware.Slots, h handler) gin.HandlerFunc {
	return s.adapt(func(c *gin.Context) error {
		if slots == nil {
			return h(c)
		}
		return middleware.Respond(c, slots.Run, func() error { return h(c) })
	})
}

// handleRead is [site.handle] for a request of a signed-in user that changes nothing. Each user has
// few slots for these, so that slow reports of one user leave the others theirs.
func (s *site) handleRead(slots middleware.Slots, h handler) gin.HandlerFunc {
	return s.adapt(func(c *gin.Context) error {
		return middleware.Respond(c, func(f func() error) error {
			return s.reads.Run(c.Request.Context(), sessionFrom(c).UserID, func() error { return slots.Run(f) })
		}, func() error { return h(c) })
	})
}

// adapt adapts a handler to gin. If the handler returns an error after it has written a response,
// adapt panics: a second response would be part of the first.
func (s *site) adapt(h handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		var err error
		if _, ok := c.Params.Get("id"); ok && idOf(c) == uuid.Nil {
			err = problem.NotFound() // as for an unknown id
		} else {
			err = parseForm(c)
		}
		if err == nil {
			err = h(c)
		}
		if err != nil && c.Writer.Written() {
			panic(fmt.Errorf("an error after the response: %w", err))
		}
		if err != nil {
			s.Render(c, err)
		}
	}
}

// limitChanges refuses a change if the user or the users of the account have made too many.
func (s *site) limitChanges(c *gin.Context) {
	session := sessionFrom(c)
	_, wait := s.changes.Take(session.UserID)
	if wait == 0 {
		_, wait = s.accountChanges.Take(session.AccountID)
	}
	if wait > 0 {
		s.Render(c, problem.TooManyChanges(wait))
		c.Abort()
	}
}

// deadline is [site.withDeadline] for the handlers after it.
func (s *site) deadline(c *gin.Context) { s.withDeadline(c, c.Next) }

// plainAddress redirects an address that ends in "?", or has the mark of a sign-in, to the same
// without it. Browsers add the "?" when they send a form without fields, such as Done.
func (s *site) plainAddress(c *gin.Context) {
	address, had := unmarked(c.Request.URL)
	if c.Request.URL.ForceQuery {
		address, had = c.Request.URL.EscapedPath(), true
	}
	if had {
		_ = s.redirect(c, address)
		c.Abort()
	}
}

// requireOwner refuses the requests of members. It must run after requireSession.
func (s *site) requireOwner(c *gin.Context) {
	if !owns(sessionFrom(c)) {
		s.Render(c, value.ErrNotOwner)
		c.Abort()
	}
}
