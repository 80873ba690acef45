package password

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// maxWaiting is the number of requests that may wait for hashing: about as many as can be hashed in
// 8 seconds.
const maxWaiting = 160

// ErrQueueFull means that too many requests wait for hashing.
var ErrQueueFull = errors.New("too many requests wait for password hashing")

// Hasher hashes one password at a time. A hash takes 46 MiB of memory and 50 ms of CPU, and
// concurrent hashes are slower than a queue.
//
// The queue is fair. Sources take turns in rounds, and known sources go first. If the queue is
// full, it drops the last request of the last round. A flood from one network therefore delays
// another network by only one hash, and it cannot keep others out.
type Hasher struct {
	params argon2Params // of new hashes

	mu      sync.Mutex
	busy    bool
	round   int
	waiting []*Turn // the next one first
}

// Place decides where a request waits in the queue.
type Place struct {
	Source string // the network, device or session
	Known  bool   // the source is a device or session of a user, or an operator
}

// Turn is a request in the queue. After [Hasher.Wait] has returned it, it hashes passwords until
// Done.
type Turn struct {
	Place
	hasher  *Hasher
	round   int
	granted chan error // receives nil, or an error if the queue drops the request
}

// NewHasher returns a hasher whose new hashes take this much memory in KiB.
func NewHasher(memory uint32) *Hasher {
	return &Hasher{params: argon2Params{memory: memory, time: 1, threads: 1}}
}

// Wait waits in the queue. The caller must call Done of the turn. The error is [ErrQueueFull] or
// that of the context.
func (h *Hasher) Wait(ctx context.Context, place Place) (*Turn, error) {
	turn := h.enter(place)
	select {
	case err := <-turn.granted:
		if err != nil {
			return nil, err
		}
		return turn, nil
	case <-ctx.Done():
		if left := h.leave(turn); !left && <-turn.granted == nil {
			turn.Done()
		}
		return nil, ctx.Err()
	}
}

func (h *Hasher) enter(place Place) *Turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	turn := &Turn{Place: place, hasher: h, round: h.round + 1, granted: make(chan error, 1)}
	if !h.busy {
		h.busy = true
		turn.granted <- nil
		return turn
	}
	for _, other := range h.waiting {
		if other.Source == turn.Source {
			turn.round = max(turn.round, other.round+1)
		}
	}
	behind := slices.IndexFunc(h.waiting, func(other *Turn) bool {
		if other.Known != turn.Known {
			return turn.Known
		}
		return other.round > turn.round
	})
	if behind < 0 {
		behind = len(h.waiting)
	}
	h.waiting = slices.Insert(h.waiting, behind, turn)
	if last := len(h.waiting) - 1; last >= maxWaiting {
		h.waiting[last].granted <- ErrQueueFull
		h.waiting = slices.Delete(h.waiting, last, last+1)
	}
	return turn
}

// Done grants the next turn.
func (t *Turn) Done() {
	h := t.hasher
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) == 0 {
		h.busy = false
		return
	}
	next := h.waiting[0]
	h.waiting = slices.Delete(h.waiting, 0, 1)
	h.round = max(h.round, next.round)
	next.granted <- nil
}

// leave removes a request from the queue. It reports false if the request is no longer in it.
func (h *Hasher) leave(turn *Turn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	place := slices.Index(h.waiting, turn)
	if place < 0 {
		return false
	}
	h.waiting = slices.Delete(h.waiting, place, place+1)
	return true
}

// Waiting returns the number of requests that wait.
func (h *Hasher) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waiting)
}
