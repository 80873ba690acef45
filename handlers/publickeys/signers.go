package publickeys

import (
	"context"
	"sync"
	"time"
)

const (
	maxSigners = 1024 // whose keys are kept
	// maxFetching is how many callers wait for all signers together.
	maxFetching = 8 * maxWaiting
)

// Signers are the public keys of many signers, by their names. They keep those of at most 1,024.
// The zero value cannot be used; see [NewSigners].
type Signers[K any] struct {
	config  func(name string) Config[K]
	waiting chan struct{} // has a value of each caller that fetches or waits for it

	mu    sync.Mutex
	known map[string]*signer[K]
}

type signer[K any] struct {
	*Keys[K]

	usedAt time.Time // Signers.mu guards it
}

// NewSigners returns the keys of signers that config describes.
func NewSigners[K any](config func(name string) Config[K]) *Signers[K] {
	return &Signers[K]{config: config, waiting: make(chan struct{}, maxFetching), known: map[string]*signer[K]{}}
}

// Get is [Keys.Get] for a signer.
func (s *Signers[K]) Get(ctx context.Context, name, id, caller string) (key K, err error) {
	keys := s.of(name)
	if key, _, fresh := keys.lookUp(id); fresh {
		return key, nil
	}
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
		return keys.Get(ctx, id, caller)
	default:
		return key, ErrBusy
	}
}

func (s *Signers[K]) of(name string) *Keys[K] {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.known[name]
	if one == nil {
		s.evict()
		one = &signer[K]{Keys: New(s.config(name))}
		s.known[name] = one
	}
	one.usedAt = one.config.Now()
	return one.Keys
}

// evict makes room for a signer: it forgets one without keys or, if all have keys, the one that was
// not used for the longest time. So names without a signer evict no signer that answers.
func (s *Signers[K]) evict() {
	if len(s.known) < maxSigners {
		return
	}
	var oldest string
	var found *signer[K]
	for name, one := range s.known {
		if found == nil || one.goesBefore(found) {
			oldest, found = name, one
		}
	}
	delete(s.known, oldest)
}

func (s *signer[K]) goesBefore(other *signer[K]) bool {
	if answers := s.known.Load() != nil; answers != (other.known.Load() != nil) {
		return !answers
	}
	return s.usedAt.Before(other.usedAt)
}
