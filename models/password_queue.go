package models

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// maxHashQueue is the number of attempts that may wait for password hashing: about as many as can
// be hashed within [hashQueueTimeout].
const maxHashQueue = 160

// errHashQueueFull means that too many attempts wait for password hashing.
var errHashQueueFull = fmt.Errorf("%w: the queue for password hashing is full", ErrUnavailable)

// passwordHasher hashes one password at a time. A hash takes 46 MiB of memory and 50 ms of CPU, and
// concurrent hashes are slower than a queue.
//
// The queue is fair. Sources take turns in rounds, and known sources go first. If the queue is
// full, the last attempt of the last round leaves it. So a flood from one network delays another
// network by one hash, and it cannot keep others out.
type passwordHasher struct {
	mu      sync.Mutex
	busy    bool
	round   int
	waiting []*hashTurn // the next one first
}

// hashQueuePlace decides where an attempt waits in the queue.
type hashQueuePlace struct {
	source string // the network, device or session
	known  bool   // it belongs to a user, not to a stranger
}

// hashTurn is an attempt in the queue.
type hashTurn struct {
	hashQueuePlace
	round   int
	granted chan error // receives nil, or an error if the attempt left the queue
}

func newPasswordHasher() *passwordHasher { return &passwordHasher{} }

// exclusively waits in the queue and runs work. If the context ends first, it returns the context's
// error; a missed deadline and a full queue are [ErrUnavailable].
func (h *passwordHasher) exclusively(ctx context.Context, place hashQueuePlace, work func() error) error {
	turn := h.enter(place)
	select {
	case err := <-turn.granted:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		if left := h.leave(turn); !left && <-turn.granted == nil {
			h.next()
		}
		return failed("wait in the queue for password hashing", ctx.Err())
	}
	defer h.next()
	return work()
}

func (h *passwordHasher) enter(place hashQueuePlace) *hashTurn {
	h.mu.Lock()
	defer h.mu.Unlock()
	turn := &hashTurn{hashQueuePlace: place, round: h.round + 1, granted: make(chan error, 1)}
	if !h.busy {
		h.busy = true
		turn.granted <- nil
		return turn
	}
	for _, other := range h.waiting {
		if other.source == turn.source {
			turn.round = max(turn.round, other.round+1)
		}
	}
	behind := slices.IndexFunc(h.waiting, func(other *hashTurn) bool {
		if other.known != turn.known {
			return turn.known
		}
		return other.round > turn.round
	})
	if behind < 0 {
		behind = len(h.waiting)
	}
	h.waiting = slices.Insert(h.waiting, behind, turn)
	if last := len(h.waiting) - 1; last >= maxHashQueue {
		h.waiting[last].granted <- errHashQueueFull
		h.waiting = slices.Delete(h.waiting, last, last+1)
	}
	return turn
}

// next grants the next turn.
func (h *passwordHasher) next() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) == 0 {
		h.busy = false
		return
	}
	turn := h.waiting[0]
	h.waiting = slices.Delete(h.waiting, 0, 1)
	h.round = max(h.round, turn.round)
	turn.granted <- nil
}

// leave removes an attempt from the queue. It reports false if the attempt is not in it any more.
func (h *passwordHasher) leave(turn *hashTurn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	place := slices.Index(h.waiting, turn)
	if place < 0 {
		return false
	}
	h.waiting = slices.Delete(h.waiting, place, place+1)
	return true
}

// hash waits in the queue and returns the PHC string of a password with a new salt.
func (h *passwordHasher) hash(ctx context.Context, place hashQueuePlace, password string) (string, error) {
	var encoded string
	err := h.exclusively(ctx, place, func() error {
		encoded = hashNow(password)
		return nil
	})
	return encoded, err
}

// length returns the number of attempts that wait.
func (h *passwordHasher) length() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waiting)
}
