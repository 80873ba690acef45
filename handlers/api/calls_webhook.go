package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models/calls"
	"portal/models/livekit"
	"portal/models/value"
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

	calls     *calls.Calls
	liveKit   *livekit.Server
	slots     middleware.Slots
	ofKey     *middleware.Limiter
	ofAccount *middleware.Limiter
	queue     *eventQueue
	results   *prometheus.CounterVec

	mu       sync.Mutex
	accounts map[uuid.UUID]uuid.UUID // by their keys: a key stays with its account
}

func newCallEvents(s *site, d deps.Deps) *callEvents {
	return &callEvents{
		site: s, calls: d.Store.Calls, liveKit: d.LiveKit, slots: middleware.NewSlots(eventSlots), ofKey: middleware.NewLimiter(eventsOfKey, d.Now),
		ofAccount: middleware.NewLimiter(eventsOfAccount, d.Now), queue: newEventQueue(d.Store.Calls.Report), results: newEventResults(d), accounts: map[uuid.UUID]uuid.UUID{},
	}
}

// The results of an event.
const (
	eventRecorded = "recorded"
	eventIgnored  = "ignored" // not about a call of an existing key
	eventRefused  = "refused" // the signature or the body is wrong
	eventFailed   = "failed"  // LiveKit sends it again
)

// newEventResults returns the metric of events, with all its label values. Without a LiveKit
// server, the registry does not have it.
func newEventResults(d deps.Deps) *prometheus.CounterVec {
	var registry prometheus.Registerer
	if d.LiveKit != nil {
		registry = d.Registry
	}
	results := promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "portal_livekit_events_total",
		Help: "Events that LiveKit has sent to /livekit/webhook, by result; ignored means that an event is not about a call of the portal, refused that its signature or body is wrong, and failed that LiveKit sends it again.",
	}, []string{"result"})
	for _, result := range []string{eventRecorded, eventIgnored, eventRefused, eventFailed} {
		results.WithLabelValues(result)
	}
	return results
}

// create records an event that the LiveKit server has signed. It reads no body without a valid
// signature.
func (e *callEvents) create(c *gin.Context) error {
	c.Header("Cache-Control", "no-store")
	result, err := e.receive(c)
	if err != nil {
		status := problem.From(err).Status
		if result = eventRefused; status >= http.StatusInternalServerError {
			result = eventFailed
		}
		if status == http.StatusUnauthorized {
			setChallenge(c, len(c.Request.Header.Values("Authorization")) > 0)
		}
	}
	e.results.WithLabelValues(result).Inc()
	return send(c, http.StatusOK, struct{}{}, err)
}

// receive records the event of a request and returns the result of an event that is not refused.
func (e *callEvents) receive(c *gin.Context) (result string, err error) {
	headers := c.Request.Header.Values("Authorization")
	if len(headers) != 1 {
		return "", problem.Unauthorized(problem.ReasonMissing, "The request has no signature. LiveKit sends it in the Authorization header.")
	}
	verify, err := e.liveKit.VerifyWebhook(headers[0], e.now())
	if err != nil {
		return "", eventError(err)
	}
	body, err := readAll(c, maxEvent)
	if err != nil {
		return "", err
	}
	if err := verify(body); err != nil {
		return "", eventError(err)
	}
	event, ours, err := livekit.ParseEvent(body)
	if err != nil {
		return "", eventError(err)
	}
	if !ours {
		return eventIgnored, nil
	}
	return e.report(c, event)
}

// report records an event of a key that exists.
func (e *callEvents) report(c *gin.Context, event livekit.Event) (result string, err error) {
	if _, wait := e.ofKey.Take(event.Room.KeyID); wait > 0 {
		return "", problem.Unavailable(errTooManyEvents)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), e.timeout)
	defer cancel()
	account, err := e.accountOf(ctx, event.Room.KeyID)
	if err != nil || account == uuid.Nil {
		return eventIgnored, err
	}
	if _, wait := e.ofAccount.Take(account); wait > 0 {
		return "", problem.Unavailable(errTooManyEvents)
	}
	return eventRecorded, e.queue.report(ctx, account, event)
}

var errTooManyEvents = fmt.Errorf("%w report events of calls of one key or account", value.ErrBusy)

// accountOf returns the account of a key, or the zero id if the key does not exist.
func (e *callEvents) accountOf(ctx context.Context, key uuid.UUID) (account uuid.UUID, err error) {
	e.mu.Lock()
	account, known := e.accounts[key]
	e.mu.Unlock()
	if known {
		return account, nil
	}
	err = e.slots.RunWhenFree(ctx, func() error {
		account, err = e.calls.AccountOf(ctx, key)
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
		return problem.Unauthorized(problem.ReasonUnknown, "The signature is not that of the LiveKit server for this body, or it has expired. "+
			"Check that LiveKit signs with the key in PORTAL_LIVEKIT_API_KEY, and that both clocks are right.")
	}
	return problem.InvalidRequest("The request body is not an event of LiveKit.")
}
