package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
)

var errOverloaded = fmt.Errorf("%w: the server has too many connections", models.ErrBusy)

// Overload closes the connections of requests for which overloaded reports true, and refuses them
// with a 503. It refuses only the API or only the pages, whichever has more running requests, so
// that a flood of one does not shut out the other. It never refuses health checks. A nil overloaded
// never refuses.
func Overload(overloaded func(*http.Request) bool, inAPI func(path string) bool, render Render) gin.HandlerFunc {
	var apiRequests, pageRequests atomic.Int64
	return func(c *gin.Context) {
		path := c.Request.URL.Path
		own, other := &pageRequests, &apiRequests
		if inAPI(path) {
			own, other = other, own
		}
		running := own.Add(1)
		defer own.Add(-1)
		if overloaded != nil && overloaded(c.Request) {
			c.Header("Connection", "close")
			if running > other.Load() && path != "/healthz" && path != "/readyz" {
				render(c, problem.Unavailable(errOverloaded))
				c.Abort()
				return
			}
		}
		c.Next()
	}
}

// refusedBusy reports whether a request was refused because there were too many others.
func refusedBusy(c *gin.Context) bool {
	cause := c.Errors.Last()
	return cause != nil && errors.Is(cause.Err, models.ErrBusy)
}

var errBusy = fmt.Errorf("%w use the database", models.ErrBusy)

// Slots limits how many requests use the database at the same time. Further requests are refused
// immediately, because they would wait until their deadline.
type Slots chan struct{}

// NewSlots returns n free slots.
func NewSlots(n int) Slots { return make(Slots, n) }

// Run calls f in a slot. If none is free, it returns a 503 instead. The slot must not be held while
// a client sends its body.
func (s Slots) Run(f func() error) error {
	select {
	case s <- struct{}{}:
		defer func() { <-s }()
		return f()
	default:
		return problem.Unavailable(errBusy)
	}
}
