package api

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/livekit"
	"portal/models/modelstest"
)

// One account's events do not delay those of another, which are recorded with them, and an event
// that cannot be recorded does not stop the others.
func TestAccountsTakeTurnsWithEvents(t *testing.T) {
	t.Parallel()
	errBad := errors.New("an event that the database refuses")
	begun, goOn := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	var batches [][]livekit.Event
	q := newEventQueue(func(_ context.Context, events ...livekit.Event) error {
		mu.Lock()
		batches = append(batches, events)
		first := len(batches) == 1
		mu.Unlock()
		if first {
			close(begun)
			<-goOn
		}
		for _, e := range events {
			if e.Room.ID == "bad" {
				return errBad
			}
		}
		return nil
	})
	busy, other := uuid.New(), uuid.New()
	var reports sync.WaitGroup
	report := func(account uuid.UUID, room string, want error) {
		reports.Go(func() {
			if err := q.report(t.Context(), account, livekit.Event{Room: livekit.Room{ID: room}}); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", room, err, want)
			}
		})
	}
	waiting := func(n int) {
		t.Helper()
		modelstest.Eventually(t, "events wait", func() bool {
			q.mu.Lock()
			defer q.mu.Unlock()
			return q.n == n
		})
	}
	report(busy, "first", nil)
	<-begun
	for range 2 * eventBatch {
		report(busy, "many", nil)
	}
	waiting(2 * eventBatch)
	report(other, "one", nil)
	report(other, "bad", errBad)
	waiting(2*eventBatch + 2)
	close(goOn)
	reports.Wait()
	second := batches[1]
	if len(second) != eventBatch || !slices.ContainsFunc(second[:4], func(e livekit.Event) bool { return e.Room.ID == "one" }) {
		t.Errorf("the second batch has %d events: %v", len(second), second)
	}
}

// An account cannot fill the queue.
func TestAnAccountHasFewWaitingEvents(t *testing.T) {
	t.Parallel()
	q := newEventQueue(nil)
	busy := uuid.New()
	for n := range maxEventsOfAccount + 1 {
		if added := q.add(busy, &waitingEvent{}); added != (n < maxEventsOfAccount) {
			t.Fatalf("event %d: %t", n, added)
		}
	}
	if !q.add(uuid.New(), &waitingEvent{}) {
		t.Error("another account's event does not wait")
	}
}

// An event at which the portal panics stops no others, neither in its batch nor later.
func TestEventThatPanicsStopsNoOthers(t *testing.T) {
	t.Parallel()
	q := newEventQueue(func(_ context.Context, events ...livekit.Event) error {
		for _, e := range events {
			if e.Room.ID == "bad" {
				panic("an odd event")
			}
		}
		return nil
	})
	good := &waitingEvent{Event: livekit.Event{Room: livekit.Room{ID: "good"}}, done: make(chan struct{})}
	q.add(uuid.New(), good)
	report := func(room string) (err error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		defer func() {
			if recover() != nil {
				err = errors.New("a panic")
			}
		}()
		return q.report(ctx, uuid.New(), livekit.Event{Room: livekit.Room{ID: room}})
	}
	if err := report("bad"); err == nil || !strings.Contains(err.Error(), "an odd event") {
		t.Errorf("the event that panics: %v", err)
	}
	select {
	case <-good.done:
		modelstest.Must(t, good.err)
	default:
		t.Error("the event recorded with it waits for ever")
	}
	modelstest.Must(t, report("later"))
}
