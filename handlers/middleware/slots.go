package middleware

import (
	"context"
	"errors"
	"fmt"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
)

// refusedBusy reports whether a request was refused because there were too many others.
func refusedBusy(c *gin.Context) bool {
	cause := c.Errors.Last()
	return cause != nil && errors.Is(cause.Err, models.ErrBusy)
}

var errBusy = fmt.Errorf("%w use the database", models.ErrBusy)

// Slots limits how many requests use the database at the same time. A slot must not be held while a
// client sends its body.
type Slots chan struct{}

// NewSlots returns n free slots.
func NewSlots(n int) Slots { return make(Slots, n) }

// Run calls f in a slot. If none is free, Run returns a 503 instead, because most requests would
// wait until their deadline.
func (s Slots) Run(f func() error) error {
	select {
	case s <- struct{}{}:
		defer func() { <-s }()
		return f()
	default:
		return problem.Unavailable(errBusy)
	}
}

// RunWhenFree calls f in a slot. If none becomes free before ctx ends, it returns a 503 instead.
func (s Slots) RunWhenFree(ctx context.Context, f func() error) error {
	select {
	case s <- struct{}{}:
		defer func() { <-s }()
		return f()
	case <-ctx.Done():
		return problem.Unavailable(errBusy)
	}
}
