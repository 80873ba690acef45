package models

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"sync"
)

// maxHashQueue is the number of attempts that may wait for password hashing: about as many as can
// be hashed within [hashQueueTimeout].
const maxHashQueue = 160

// errHashQueueFull means that too many attempts wait for password hashing.
var errHashQueueFull = fmt.Errorf("%w: %w wait for password hashing", ErrUnavailable, ErrBusy)

// passwordHasher hashes one password at a time. A hash takes 46 MiB of memory and 50 ms of CPU, and
// concurrent hashes are slower than a queue.
//
// The queue is fair. Sources take turns in rounds, and known sources go first. If the queue is
// full, it drops the last attempt of the last round. A flood from one network therefore delays
// another network by only one hash, and it cannot keep others out.
type passwordHasher struct {
	params argon2Params // of new hashes

	// absent is the hash of a user without a password. The password of an unknown user is
	// compared with it too, so that the response takes as long as for a known user. No password
	// has this hash.
	absent string

	mu      sync.Mutex
	busy    bool
	round   int
	waiting []*hashTurn // the next one first
}

// absentEnd is the end of every absent hash: its salt and hash are zeros. The beginning may have
// the parameters of an older release.
var absentEnd = "$" + base64.RawStdEncoding.EncodeToString(make([]byte, argon2SaltLength)) +
	"$" + base64.RawStdEncoding.EncodeToString(make([]byte, argon2HashLength))

// hashQueuePlace decides where an attempt waits in the queue.
type hashQueuePlace struct {
	source string // the network, device or session
	known  bool   // the source is a device or session of a user, or an operator
}

// hashTurn is an attempt in the queue.
type hashTurn struct {
	hashQueuePlace
	round   int
	granted chan error // receives nil, or an error if the queue drops the attempt
}

func newPasswordHasher(memory uint32) *passwordHasher {
	params := argon2Params{memory: memory, time: 1, threads: 1}
	return &passwordHasher{
		params: params,
		absent: encodePHC(params, make([]byte, argon2SaltLength), make([]byte, argon2HashLength)),
	}
}

// exclusively waits in the queue and runs work while no other work runs. If the context ends first,
// it returns the context's error. A missed deadline and a full queue are also [ErrUnavailable].
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

// leave removes an attempt from the queue. It reports false if the attempt is no longer in it.
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
		encoded = h.hashNow(password)
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
