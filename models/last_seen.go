package models

import (
	"cmp"
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
// issued for agents, and when keys last used them.
type lastSeenBuffer struct {
	mu      sync.Mutex
	pending map[seenID]lastSeen
}

// seenID is the id of a session or an agent, and of the key that used the agent.
type seenID struct{ ID, KeyID uuid.UUID }

type lastSeen struct {
	at      time.Time
	address string
}

func newLastSeenBuffer() *lastSeenBuffer { return &lastSeenBuffer{pending: map[seenID]lastSeen{}} }

func (b *lastSeenBuffer) set(id seenID, seen lastSeen) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seen.at.After(b.pending[id].at) {
		b.pending[id] = seen
	}
}

// latest returns the later of the stored time and the one in the buffer.
func (b *lastSeenBuffer) latest(id seenID, stored time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seen := b.pending[id]; seen.at.After(stored) {
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
		rows = append(rows, sighting{id.ID, id.KeyID, seen.at, seen.address})
	}
	slices.SortFunc(rows, func(a, b sighting) int { return cmp.Or(compareIDs(a.ID, b.ID), compareIDs(a.KeyID, b.KeyID)) })
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
		if id := (seenID{row.ID, row.KeyID}); b.pending[id] == (lastSeen{row.At, row.Address}) {
			delete(b.pending, id)
		}
	}
}

// sighting is an entry of a [lastSeenBuffer].
type sighting struct {
	ID      uuid.UUID `bun:"type:uuid"`
	KeyID   uuid.UUID `bun:"type:uuid"`
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

// agentUse is when a key last used an agent.
type agentUse struct {
	bun.BaseModel `bun:"table:api_key_agents"`

	APIKeyID uuid.UUID
	AgentID  uuid.UUID
	UsedAt   time.Time
}

// flush writes nothing for agents that were removed after their last token.
func (a *Agents) flush(ctx context.Context) error {
	return failed("write when agents were last used", a.lastTokens.flush(func(seen []sighting) error {
		ids, left := []uuid.UUID{}, []uuid.UUID{}
		for _, one := range seen {
			ids = append(ids, one.ID)
		}
		err := a.db.NewSelect().Model((*Agent)(nil)).Column("id").Where("id IN (?)", bun.List(ids)).OrderExpr("id").Scan(ctx, &left)
		if err != nil {
			return err
		}
		var tokens []lastToken
		var uses []agentUse
		for _, one := range seen {
			switch {
			case !slices.Contains(left, one.ID):
			case one.KeyID == uuid.Nil:
				tokens = append(tokens, lastToken{AgentID: one.ID, IssuedAt: one.At})
			default:
				uses = append(uses, agentUse{APIKeyID: one.KeyID, AgentID: one.ID, UsedAt: one.At})
			}
		}
		if len(tokens) > 0 {
			_, err = a.db.NewInsert().Model(&tokens).On("CONFLICT (agent_id) DO UPDATE").
				Set("issued_at = excluded.issued_at").
				Where("last_token.issued_at < excluded.issued_at").Exec(ctx)
		}
		if err == nil && len(uses) > 0 {
			_, err = a.db.NewInsert().Model(&uses).On("CONFLICT (api_key_id, agent_id) DO UPDATE").
				Set("used_at = excluded.used_at").
				Where("agent_use.used_at < excluded.used_at").Exec(ctx)
		}
		return err
	}))
}
