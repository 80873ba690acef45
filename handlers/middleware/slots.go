package middleware

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/value"
)

// refusedBusy reports whether a request was refused because there were too many others.
func refusedBusy(c *gin.Context) bool {
	cause := c.Errors.Last()
	return cause != nil && errors.Is(cause.Err, value.ErrBusy)
}

var errBusy = fmt.Errorf("%w use the database", value.ErrBusy)

// Slots limits how many requests use the database at the same time. A slot must not be held while a
// client sends its body or receives its response.
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

// Respond calls the handler f by run, such as [Slots.Run], and writes its response after run, so
// that a slow client holds no slot.
func Respond(c *gin.Context, run func(func() error) error, f func() error) error {
	w := c.Writer
	held := &heldResponse{ResponseWriter: w}
	err := run(func() error {
		c.Writer = held
		defer func() { c.Writer = w }()
		return f()
	})
	switch {
	case len(held.body) > 0:
		_, _ = w.Write(held.body) // fails only if the client has disconnected
	case held.written:
		w.WriteHeaderNow()
	}
	return err
}

// heldResponse is a response that is complete before it is written.
type heldResponse struct {
	gin.ResponseWriter

	body    []byte
	written bool
}

// Write implements [io.Writer].
func (w *heldResponse) Write(p []byte) (int, error) {
	w.written = true
	w.body = append(w.body, p...)
	return len(p), nil
}

// WriteString implements [io.StringWriter].
func (w *heldResponse) WriteString(text string) (int, error) { return w.Write([]byte(text)) }

// WriteHeaderNow implements [gin.ResponseWriter].
func (w *heldResponse) WriteHeaderNow() { w.written = true }

// Written implements [gin.ResponseWriter].
func (w *heldResponse) Written() bool { return w.written }

// Size implements [gin.ResponseWriter].
func (w *heldResponse) Size() int { return len(w.body) }

// Flush implements [http.Flusher].
func (*heldResponse) Flush() {}

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

// SlotsOf limits how many requests of each id, such as that of a user, run at the same time.
type SlotsOf struct {
	n       int
	wait    time.Duration
	refusal problem.Problem

	mu   sync.Mutex
	byID map[uuid.UUID]*slotsOfOne // with requests that run or wait
}

type slotsOfOne struct {
	Slots
	requests int // that run or wait
}

// NewSlotsOf returns n free slots for each id. A request waits for one for the time at most, and is
// then refused.
func NewSlotsOf(n int, wait time.Duration, refusal problem.Problem) *SlotsOf {
	return &SlotsOf{n: n, wait: wait, refusal: refusal, byID: map[uuid.UUID]*slotsOfOne{}}
}

// Run calls f in a slot of the id. If none becomes free in time, it returns the refusal instead.
func (s *SlotsOf) Run(ctx context.Context, id uuid.UUID, f func() error) error {
	own := s.join(id)
	defer s.leave(id, own)
	limited, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	select {
	case own.Slots <- struct{}{}:
		defer func() { <-own.Slots }()
		return f()
	case <-limited.Done():
		return s.refusal
	}
}

func (s *SlotsOf) join(id uuid.UUID) *slotsOfOne {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.byID[id]
	if own == nil {
		own = &slotsOfOne{Slots: NewSlots(s.n)}
		s.byID[id] = own
	}
	own.requests++
	return own
}

func (s *SlotsOf) leave(id uuid.UUID, own *slotsOfOne) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.requests--; own.requests == 0 {
		delete(s.byID, id)
	}
}
