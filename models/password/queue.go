package password

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// maxWaiting is the number of requests of one class that may wait for hashing. Twice as many can be
// hashed in about 8 seconds.
const maxWaiting = 80

// ErrQueueFull means that too many requests wait for hashing.
var ErrQueueFull = errors.New("too many requests wait for password hashing")

// Hasher hashes one password at a time. A hash takes 46 MiB of memory and 50 ms of CPU, and
// concurrent hashes are slower than a queue.
//
// The queue is fair. Known users and strangers are served in turn, and within each class the
// clients take turns in rounds. If a class is full, it drops the last request of its last round. A
// flood from one client therefore delays another client by only two hashes, and it cannot keep
// others out.
type Hasher struct {
	params argon2Params // of new hashes

	mu        sync.Mutex
	busy      bool
	known     class
	strangers class
	last      *class // the class of the last turn
}

// class is one of the two classes of requests.
type class struct {
	round   int     // of the last request that was served
	waiting []*Turn // the next one first
}

// Place decides where a request waits in the queue.
type Place struct {
	Client string // the user if known, otherwise the network
	Known  bool   // the request has a device or session of the user, or is an operator's
}

// Turn is a request in the queue. After [Hasher.Wait] has returned it, it hashes passwords until
// Done.
type Turn struct {
	hasher  *Hasher
	class   *class
	client  string
	round   int
	granted chan error // receives nil, or an error if the queue drops the request
}

// NewHasher returns a hasher whose new hashes take this much memory in KiB.
func NewHasher(memory uint32) *Hasher {
	return &Hasher{params: argon2Params{memory: memory, time: 1, threads: 1}}
}

// Wait waits in the queue, and returns [ErrQueueFull] or the error of the context. Without an
// error, the caller must call Done of the turn.
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
	turn := &Turn{hasher: h, class: &h.strangers, client: place.Client, granted: make(chan error, 1)}
	if place.Known {
		turn.class = &h.known
	}
	if !h.busy {
		h.busy, h.last = true, turn.class
		turn.granted <- nil
		return turn
	}
	turn.class.add(turn)
	return turn
}

// add adds a request behind the others of its round, and drops the last request of a full class.
func (c *class) add(turn *Turn) {
	turn.round = c.round + 1
	for _, other := range c.waiting {
		if other.client == turn.client {
			turn.round = max(turn.round, other.round+1)
		}
	}
	behind := slices.IndexFunc(c.waiting, func(other *Turn) bool { return other.round > turn.round })
	if behind < 0 {
		behind = len(c.waiting)
	}
	c.waiting = slices.Insert(c.waiting, behind, turn)
	if last := len(c.waiting) - 1; last >= maxWaiting {
		c.waiting[last].granted <- ErrQueueFull
		c.waiting = slices.Delete(c.waiting, last, last+1)
	}
}

// Done grants the next turn.
func (t *Turn) Done() {
	h := t.hasher
	h.mu.Lock()
	defer h.mu.Unlock()
	classes := []*class{&h.known, &h.strangers}
	if h.last == &h.known {
		slices.Reverse(classes)
	}
	for _, c := range classes {
		if len(c.waiting) > 0 {
			next := c.waiting[0]
			c.waiting = slices.Delete(c.waiting, 0, 1)
			c.round = max(c.round, next.round)
			h.last = c
			next.granted <- nil
			return
		}
	}
	h.busy = false
}

// leave removes a request from the queue, and reports false if the request is no longer in it.
func (h *Hasher) leave(turn *Turn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	place := slices.Index(turn.class.waiting, turn)
	if place < 0 {
		return false
	}
	turn.class.waiting = slices.Delete(turn.class.waiting, place, place+1)
	return true
}

// Waiting returns the number of requests that wait.
func (h *Hasher) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.known.waiting) + len(h.strangers.waiting)
}
