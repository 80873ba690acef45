package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models"
	"portal/models/livekit"
)

const (
	// maxEvent is the largest body of LiveKit's webhooks, in bytes.
	maxEvent = 64 << 10
	// eventSlots is how many events look up their account at the same time.
	eventSlots = 4
	// maxEventKeys limits the keys whose accounts are remembered.
	maxEventKeys = 10_000
)

// eventsOfKey and eventsOfAccount limit the events of the calls of one key and of one account.
// LiveKit sends refused ones again, and the lists of rooms show what it gives up.
var (
	eventsOfKey     = middleware.RateLimit{PerSecond: 50, Burst: 500}
	eventsOfAccount = middleware.RateLimit{PerSecond: 200, Burst: 2000}
)

// callEvents has the endpoint for LiveKit's webhooks.
type callEvents struct {
	*site

	slots     middleware.Slots
	ofKey     *middleware.Limiter
	ofAccount *middleware.Limiter
	queue     *eventQueue

	mu       sync.Mutex
	accounts map[uuid.UUID]uuid.UUID // by their keys: a key stays with its account
}

func newCallEvents(s *site) *callEvents {
	return &callEvents{
		site: s, slots: middleware.NewSlots(eventSlots), ofKey: middleware.NewLimiter(eventsOfKey, s.Now),
		ofAccount: middleware.NewLimiter(eventsOfAccount, s.Now), queue: newEventQueue(s.Store.Calls.Report), accounts: map[uuid.UUID]uuid.UUID{},
	}
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

// report records an event of a key that exists.
func (e *callEvents) report(c *gin.Context, event livekit.Event) error {
	if _, wait := e.ofKey.Take(event.Room.KeyID); wait > 0 {
		return problem.Unavailable(errTooManyEvents)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), e.Store.Timeout())
	defer cancel()
	account, err := e.accountOf(ctx, event.Room.KeyID)
	if err != nil || account == uuid.Nil {
		return err
	}
	if _, wait := e.ofAccount.Take(account); wait > 0 {
		return problem.Unavailable(errTooManyEvents)
	}
	return e.queue.report(ctx, account, event)
}

var errTooManyEvents = fmt.Errorf("%w report events of calls of one key or account", models.ErrBusy)

// accountOf returns the account of a key, or the zero id if the key does not exist.
func (e *callEvents) accountOf(ctx context.Context, key uuid.UUID) (account uuid.UUID, err error) {
	e.mu.Lock()
	account, known := e.accounts[key]
	e.mu.Unlock()
	if known {
		return account, nil
	}
	err = e.slots.RunWhenFree(ctx, func() error {
		account, err = e.Store.Calls.AccountOf(ctx, key)
		return err
	})
	if err != nil || account == uuid.Nil {
		return account, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.accounts) >= maxEventKeys {
		clear(e.accounts)
	}
	e.accounts[key] = account
	return account, nil
}

// eventError returns the response to the errors of package livekit.
func eventError(err error) error {
	if errors.Is(err, livekit.ErrSignature) {
		return refusedEvent(problem.ReasonUnknown, "The signature is not that of the LiveKit server for this body, or it has expired. "+
			"Check that LiveKit signs with the key in PORTAL_LIVEKIT_API_KEY, and that both clocks are right.")
	}
	return problem.InvalidRequest("The request body is not an event of LiveKit.")
}

func refusedEvent(reason, message string) error { return problem.Unauthorized(reason, message) }
