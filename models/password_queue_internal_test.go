package models

import (
	"context"
	"errors"
	"testing"
	"time"
)

// outcome describes the result that an attempt in the queue has received so far.
func (t *hashTurn) outcome() string {
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
	flooding, other := hashQueuePlace{source: site("2001:db8:1:2::3")}, hashQueuePlace{source: site("2001:db8:2:2::3")}
	if site("2001:db8:1:ffff::3") != flooding.source {
		t.Fatal("one /48 is several sources")
	}
	h := newPasswordHasher(DefaultPasswordMemory)
	check := func(name string, turn *hashTurn, want string) {
		t.Helper()
		if got := turn.outcome(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	check("the first", h.enter(flooding), "granted")
	var flood []*hashTurn
	for range 1000 {
		flood = append(flood, h.enter(flooding))
	}
	if len(h.waiting) != maxHashQueue {
		t.Errorf("%d wait, want %d", len(h.waiting), maxHashQueue)
	}
	check("the last of the flood", flood[999], "refused")
	stranger, second := h.enter(other), h.enter(other)
	user := h.enter(hashQueuePlace{source: "device", known: true})
	h.next()
	check("a known device", user, "granted")
	h.next()
	check("the flood's first", flood[0], "granted")
	check("another network", stranger, "waiting")
	h.next()
	check("another network", stranger, "granted")
	h.next()
	h.next()
	check("its second", second, "granted")
	check("the flood's second", flood[1], "granted")
	check("the flood's third", flood[2], "waiting")
}

func TestHashQueueForgetsCanceledAttempts(t *testing.T) {
	t.Parallel()
	h := newPasswordHasher(DefaultPasswordMemory)
	release, done := make(chan struct{}), make(chan error)
	started := make(chan struct{})
	go func() {
		done <- h.exclusively(t.Context(), hashQueuePlace{}, func() error { close(started); <-release; return nil })
	}()
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := h.exclusively(ctx, hashQueuePlace{}, func() error { t.Error("it ran"); return nil })
	if !errors.Is(err, ErrUnavailable) || len(h.waiting) != 0 {
		t.Errorf("%v, %d wait", err, len(h.waiting))
	}
	close(release)
	if err := <-done; err != nil || h.busy {
		t.Errorf("%v, busy %t", err, h.busy)
	}
}
