package password

import (
	"context"
	"errors"
	"testing"
	"time"
)

// outcome describes the result that a request in the queue has received so far.
func (t *Turn) outcome() string {
	select {
	case err := <-t.granted:
		if err != nil {
			return "refused"
		}
		return "granted"
	default:
		return "waiting"
	}
}

func TestHashQueueIsFair(t *testing.T) {
	t.Parallel()
	flooding, other := Place{Source: "a network"}, Place{Source: "another network"}
	known := Place{Source: "a user", Known: true}
	h := NewHasher(DefaultMemory)
	check := func(name string, turn *Turn, want string) {
		t.Helper()
		if got := turn.outcome(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	first := h.enter(flooding)
	check("the first", first, "granted")
	var flood []*Turn
	for range 1000 {
		flood = append(flood, h.enter(flooding))
	}
	if h.Waiting() != maxWaiting {
		t.Errorf("%d wait, want %d", h.Waiting(), maxWaiting)
	}
	check("the last of the flood", flood[999], "refused")
	stranger, second := h.enter(other), h.enter(other)
	user, again := h.enter(known), h.enter(known)
	first.Done()
	check("a known user", user, "granted")
	user.Done()
	check("the flood's first", flood[0], "granted")
	check("the known user's second", again, "waiting")
	check("another network", stranger, "waiting")
	flood[0].Done()
	check("the known user's second", again, "granted")
	again.Done()
	check("another network", stranger, "granted")
	stranger.Done()
	check("the flood's second", flood[1], "granted")
	flood[1].Done()
	check("its second", second, "granted")
	check("the flood's third", flood[2], "waiting")
}

func TestHashQueueForgetsCanceledRequests(t *testing.T) {
	t.Parallel()
	h := NewHasher(DefaultMemory)
	turn, err := h.Wait(t.Context(), Place{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := h.Wait(ctx, Place{}); !errors.Is(err, context.DeadlineExceeded) || h.Waiting() != 0 {
		t.Errorf("%v, %d wait", err, h.Waiting())
	}
	turn.Done()
	if h.busy {
		t.Error("the queue is still busy")
	}
}
