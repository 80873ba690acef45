package models

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
)

// lastSeenBuffer holds when and where sessions were last seen until the background flush writes it,
// so that reading a page needs no database write. Another one holds when tokens were last issued
// for agents.
type lastSeenBuffer struct {
	mu      sync.Mutex
	pending map[uuid.UUID]lastSeen
}

type lastSeen struct {
	at      time.Time
	address string
}

func newLastSeenBuffer() *lastSeenBuffer { return &lastSeenBuffer{pending: map[uuid.UUID]lastSeen{}} }

func (b *lastSeenBuffer) set(sessionID uuid.UUID, seen lastSeen) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seen.at.After(b.pending[sessionID].at) {
		b.pending[sessionID] = seen
	}
}

// latest returns the later of the stored time and the one in the buffer.
func (b *lastSeenBuffer) latest(sessionID uuid.UUID, stored time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seen := b.pending[sessionID]; seen.at.After(stored) {
		return seen.at
	}
	return stored
}

func (b *lastSeenBuffer) snapshot() map[uuid.UUID]lastSeen {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.pending)
}

// remove removes the entry of a session unless it has changed since it was written.
func (b *lastSeenBuffer) remove(sessionID uuid.UUID, written lastSeen) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending[sessionID] == written {
		delete(b.pending, sessionID)
	}
}

// flushLastSeen writes each session in its own statement. They are few, and a locked row delays
// only itself.
func (s *Store) flushLastSeen(ctx context.Context) error {
	for id, seen := range s.lastSeen.snapshot() {
		_, err := s.db.NewUpdate().Model((*Session)(nil)).
			Set("last_seen_at = ?, last_address = ?", seen.at, seen.address).
			Where("id = ? AND last_seen_at < ?", id, seen.at).Exec(ctx)
		if err != nil {
			return failed("write when a session was last seen", err)
		}
		s.lastSeen.remove(id, seen)
	}
	return nil
}
