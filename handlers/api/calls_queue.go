package api

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/livekit"
	"portal/models/value"
)

const (
	// eventBatch is how many events are recorded in one transaction.
	eventBatch = 50
	// maxEventsWaiting limits the events that wait, and maxEventsOfAccount those of an account.
	maxEventsWaiting   = 2000
	maxEventsOfAccount = 200
)

var errEventsWaiting = fmt.Errorf("%w report events of calls", value.ErrBusy)

// eventQueue records events in batches, one at a time, so that they leave the database to others.
// The accounts take turns: each has one event in a batch before one has two.
type eventQueue struct {
	record func(ctx context.Context, events ...livekit.Event) error

	recording chan struct{} // taken by the request that records a batch

	mu       sync.Mutex
	accounts []*accountEvents // with events that wait, in the order of their turns
	n        int              // events that wait
}

type accountEvents struct {
	id     uuid.UUID
	events []*waitingEvent
}

type waitingEvent struct {
	livekit.Event

	done chan struct{} // closed when err is set
	err  error
}

func newEventQueue(record func(context.Context, ...livekit.Event) error) *eventQueue {
	return &eventQueue{record: record, recording: make(chan struct{}, 1)}
}

// report records an event with others that wait. One of the requests that wait records a batch,
// which can be without its own event. If ctx ends, the event may still be recorded.
func (q *eventQueue) report(ctx context.Context, accountID uuid.UUID, event livekit.Event) error {
	own := &waitingEvent{Event: event, done: make(chan struct{})}
	if !q.add(accountID, own) {
		return problem.Unavailable(errEventsWaiting)
	}
	for {
		select {
		case <-own.done:
			return own.err
		case <-ctx.Done():
			return problem.Unavailable(errEventsWaiting)
		case q.recording <- struct{}{}:
			q.recordBatch(context.WithoutCancel(ctx)) // others wait for it too
			<-q.recording
		}
	}
}

// add lets an event wait, unless too many do.
func (q *eventQueue) add(accountID uuid.UUID, event *waitingEvent) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	var account *accountEvents
	for _, a := range q.accounts {
		if a.id == accountID {
			account = a
		}
	}
	if q.n >= maxEventsWaiting || account != nil && len(account.events) >= maxEventsOfAccount {
		return false
	}
	if account == nil {
		account = &accountEvents{id: accountID}
		q.accounts = append(q.accounts, account)
	}
	account.events = append(account.events, event)
	q.n++
	return true
}

func (q *eventQueue) next() (batch []*waitingEvent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(batch) < eventBatch && q.n > 0 {
		account := q.accounts[0]
		q.accounts = q.accounts[1:]
		batch, account.events = append(batch, account.events[0]), account.events[1:]
		q.n--
		if len(account.events) > 0 {
			q.accounts = append(q.accounts, account)
		}
	}
	return batch
}

// recordBatch records a batch. If that fails although the database answers, it records each event
// by itself, so that one event does not stop those of others.
func (q *eventQueue) recordBatch(ctx context.Context) {
	batch := q.next()
	events := make([]livekit.Event, len(batch))
	for i, waiting := range batch {
		events[i] = waiting.Event
	}
	var err error
	if len(events) > 0 {
		err = q.try(ctx, events...)
	}
	for _, waiting := range batch {
		if waiting.err = err; err != nil && len(batch) > 1 && !errors.Is(err, value.ErrUnavailable) {
			waiting.err = q.try(ctx, waiting.Event)
		}
		close(waiting.done)
	}
}

// try records events. A panic is an error, because other requests wait for the end of the batch.
func (q *eventQueue) try(ctx context.Context, events ...livekit.Event) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic while events of calls are recorded: %v\n%s", cause, debug.Stack())
		}
	}()
	return q.record(ctx, events...)
}
