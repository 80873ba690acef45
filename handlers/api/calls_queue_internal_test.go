package api

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

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
