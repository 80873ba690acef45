package models

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

// sightings remembers when sessions were last seen until that is written, so
// that reading a page costs no write.
type sightings struct {
	mu      sync.Mutex
	pending map[uuid.UUID]sighting
}

type sighting struct {
	at      time.Time
	address string
}

func newSightings() *sightings { return &sightings{pending: map[uuid.UUID]sighting{}} }

func (s *sightings) note(sessionID uuid.UUID, at time.Time, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.After(s.pending[sessionID].at) {
		s.pending[sessionID] = sighting{at, address}
	}
}

// latest returns the later of what is stored and what is in memory.
func (s *sightings) latest(sessionID uuid.UUID, stored time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen := s.pending[sessionID]; seen.at.After(stored) {
		return seen.at
	}
	return stored
}

// take returns what is to be written. It stays in memory until written is
// called for it.
func (s *sightings) take() map[uuid.UUID]sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := make(map[uuid.UUID]sighting, len(s.pending))
	for id, seen := range s.pending {
		taken[id] = seen
	}
	return taken
}

func (s *sightings) written(sessionID uuid.UUID, seen sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[sessionID] == seen {
		delete(s.pending, sessionID)
	}
}

// flushSightings writes each session in a statement of its own: they are few,
// and none waits for another's row.
func (s *Store) flushSightings(ctx context.Context) error {
	for id, seen := range s.seen.take() {
		_, err := s.db.NewUpdate().Model((*Session)(nil)).
			Set("last_seen_at = ?, last_address = ?", seen.at, seen.address).
			Where("id = ? AND last_seen_at < ?", id, seen.at).Exec(ctx)
		if err != nil {
			return failed("write when a session was seen", err)
		}
		s.seen.written(id, seen)
	}
	return nil
}
