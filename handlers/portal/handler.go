package portal

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models"
)

// maxForm limits the size of a form in bytes. Valid forms have a few hundred. Larger ones are read
// too, so that the page can show an overlong field again with its error.
const maxForm = 256 << 10

// maxActions limits how many actions run at once.
const maxActions = 256

// changeRate limits the changes of one user on this instance, because each adds a row to the
// activity log for 400 days. Generating and revoking keys does not count: nothing may delay a
// revocation, and an account has at most 100 active keys.
var changeRate = middleware.RateLimit{PerSecond: 1, Burst: 120}

// The parameters that select a page of a list: the id of the last entry on the previous page.
const (
	paramAfter  = "after"
	paramBefore = "before" // in lists with the newest entry first
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

// parseForm reads the form before the handler runs. Otherwise the fields of an unreadable form
// would seem empty.
func parseForm(c *gin.Context) error {
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxForm)
	err := c.Request.ParseForm()
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return problem.PayloadTooLarge(maxForm)
	}
	if err != nil {
		return problem.InvalidRequest("The form could not be read. Go back and try again.")
	}
	return nil
}

// limitChanges refuses the change of a user who has made too many.
func (s *site) limitChanges(c *gin.Context) {
	if _, wait := s.changes.Take(sessionFrom(c).UserID); wait > 0 {
		s.Render(c, problem.TooManyChanges(wait))
		c.Abort()
	}
}

// idOf returns the id in the path, which [site.handle] has checked.
func idOf(c *gin.Context) uuid.UUID {
	id, _ := parseID(c.Param("id"))
	return id
}

// parseID parses an id other than the zero id.
func parseID(text string) (uuid.UUID, bool) {
	id, ok := models.ParseID(text)
	return id, ok && id != uuid.Nil
}

// queryID returns an id in the query string, or the zero id if there is none.
func queryID(c *gin.Context, name string) (uuid.UUID, error) {
	text, found := c.GetQuery(name)
	id, ok := parseID(text)
	if found && !ok {
		return uuid.Nil, problem.NotFound()
	}
	return id, nil
}

// withDeadline calls f while the request's context has the database's time limit.
func (s *site) withDeadline(c *gin.Context, f func()) {
	whole := c.Request.Context()
	ctx, cancel := context.WithTimeout(whole, s.Store.Timeout())
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	f()
	c.Request = c.Request.WithContext(whole)
}

// deadline is [site.withDeadline] for the handlers after it.
func (s *site) deadline(c *gin.Context) { s.withDeadline(c, c.Next) }
