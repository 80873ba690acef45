package middleware

import (
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
)

var errOverloaded = errors.New("the server has too many connections")

// Overload refuses requests with a 503 while overloaded reports true for them, and closes their
// connections. It refuses only the group, the API or the pages, that has more running requests. So
// a flood of one group does not shut out the other. It lets the probes of the service's health
// pass. A nil overloaded never refuses.
func Overload(
	overloaded func(*http.Request) bool, inAPI func(path string) bool, render func(*gin.Context, error),
) gin.HandlerFunc {
	var inAPIs, inPages atomic.Int64
	return func(c *gin.Context) {
		path := c.Request.URL.Path
		own, other := &inPages, &inAPIs
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

var errBusy = errors.New("too many requests use the database")

// Slots bounds how many requests use the database at once. Others are refused at once, because they
// would wait until their deadline.
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
