package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models"
	"portal/models/livekit"
)

const (
	// maxEvent is the largest body of LiveKit's webhooks, in bytes.
	maxEvent = 64 << 10
	// eventSlots is how many events use the database at the same time.
	eventSlots = 4
)

// eventsOfKey limits the events of the calls of one key. LiveKit sends refused ones again, and the
// lists of rooms show what it gives up.
var eventsOfKey = middleware.RateLimit{PerSecond: 50, Burst: 500}

// callEvents has the endpoint for LiveKit's webhooks.
type callEvents struct {
	*site

	slots middleware.Slots
	limit *middleware.Limiter // of the events of each key
}

func newCallEvents(s *site) *callEvents {
	return &callEvents{site: s, slots: middleware.NewSlots(eventSlots), limit: middleware.NewLimiter(eventsOfKey, s.Now)}
}

// create records an event that the LiveKit server has signed. It reads no body without a valid
// signature.
func (e *callEvents) create(c *gin.Context) error {
	c.Header("Cache-Control", "no-store")
	err := e.receive(c)
	if err != nil && problem.From(err).Status == http.StatusUnauthorized {
		setChallenge(c, len(c.Request.Header.Values("Authorization")) > 0)
	}
	return err
}

func (e *callEvents) receive(c *gin.Context) error {
	headers := c.Request.Header.Values("Authorization")
	if len(headers) != 1 {
		return refusedEvent(problem.ReasonMissing, "The request has no signature. LiveKit sends it in the Authorization header.")
	}
	verify, err := e.LiveKit.VerifyWebhook(headers[0], e.Now())
	if err != nil {
		return eventError(err)
	}
	body, err := readAll(c, maxEvent)
	if err != nil {
		return err
	}
	if err := verify(body); err != nil {
		return eventError(err)
	}
	event, ours, err := livekit.ParseEvent(body)
	if err != nil {
		return eventError(err)
	}
	if ours {
		err = e.report(c, event)
	}
	return send(c, http.StatusOK, struct{}{}, err)
}

// report records an event in a slot.
func (e *callEvents) report(c *gin.Context, event livekit.Event) error {
	if _, wait := e.limit.Take(event.Room.KeyID); wait > 0 {
		return problem.Unavailable(errTooManyEvents)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), e.Store.Timeout())
	defer cancel()
	return e.slots.RunWhenFree(ctx, func() error { return e.Store.Calls.Report(ctx, event) })
}

var errTooManyEvents = fmt.Errorf("%w report events of calls of one key", models.ErrBusy)

// eventError returns the response to the errors of package livekit.
func eventError(err error) error {
	if errors.Is(err, livekit.ErrSignature) {
		return refusedEvent(problem.ReasonUnknown, "The signature is not that of the LiveKit server for this body, or it has expired. "+
			"Check that LiveKit signs with the key in PORTAL_LIVEKIT_API_KEY, and that both clocks are right.")
	}
	return problem.InvalidRequest("The request body is not an event of LiveKit.")
}

func refusedEvent(reason, message string) error { return problem.Unauthorized(reason, message) }
