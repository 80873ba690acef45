package models

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// lastSeenBuffer holds when and where sessions were last seen until the background flush writes
// them, so that reading a page needs no database write. Another buffer holds when tokens were last
// issued for agents.
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

// flush passes the entries to write, in chunks in the order of their ids, so that the flushes of
// two instances cannot deadlock. Unless a written entry has changed meanwhile, flush removes it.
func (b *lastSeenBuffer) flush(write func([]sighting) error) error {
	b.mu.Lock()
	pending := maps.Clone(b.pending)
	b.mu.Unlock()
	rows := make([]sighting, 0, len(pending))
	for id, seen := range pending {
		rows = append(rows, sighting{id, seen.at, seen.address})
	}
	slices.SortFunc(rows, func(a, b sighting) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	for chunk := range slices.Chunk(rows, 1000) {
		if err := write(chunk); err != nil {
			return err
		}
		b.remove(chunk)
	}
	return nil
}

func (b *lastSeenBuffer) remove(written []sighting) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, row := range written {
		if b.pending[row.ID] == (lastSeen{row.At, row.Address}) {
			delete(b.pending, row.ID)
		}
	}
}

// sighting is an entry of a [lastSeenBuffer].
type sighting struct {
	ID      uuid.UUID `bun:"type:uuid"`
	At      time.Time `bun:"type:timestamptz"`
	Address string    `bun:"type:text"`
}

// flush skips locked sessions: such a session has just ended, or another instance has just
// seen it too.
func (s *Sessions) flush(ctx context.Context) error {
	return failed("write when sessions were last seen", s.lastSeen.flush(func(rows []sighting) error {
		unlocked := s.db.NewSelect().TableExpr("sessions").Column("id").Where("id IN (SELECT id FROM seen)")
		_, err := s.db.NewUpdate().With("seen", s.db.NewValues(&rows)).Model((*Session)(nil)).TableExpr("seen").
			Set("last_seen_at = seen.at, last_address = seen.address").
			Where("session.id = seen.id AND session.last_seen_at < seen.at").
			Where("session.id IN (?)", s.db.locked(unlocked, "NO KEY UPDATE SKIP LOCKED")).Exec(ctx)
		return err
	}))
}

type lastToken struct {
	bun.BaseModel `bun:"table:agent_last_tokens"`

	AgentID  uuid.UUID
	IssuedAt time.Time
}

// flush writes nothing for agents that were removed after their last token.
func (a *Agents) flush(ctx context.Context) error {
	return failed("write when tokens were last issued", a.lastTokens.flush(func(seen []sighting) error {
		times, left := map[uuid.UUID]time.Time{}, []uuid.UUID{}
		for _, one := range seen {
			times[one.ID] = one.At
		}
		ids := slices.Collect(maps.Keys(times))
		err := a.db.NewSelect().Model((*Agent)(nil)).Column("id").Where("id IN (?)", bun.List(ids)).OrderExpr("id").Scan(ctx, &left)
		if err != nil || len(left) == 0 {
			return err
		}
		rows := make([]lastToken, len(left))
		for i, id := range left {
			rows[i] = lastToken{AgentID: id, IssuedAt: times[id]}
		}
		_, err = a.db.NewInsert().Model(&rows).On("CONFLICT (agent_id) DO UPDATE").
			Set("issued_at = excluded.issued_at").
			Where("last_token.issued_at < excluded.issued_at").Exec(ctx)
		return err
	}))
}
