package portal

import (
	"fmt"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
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
