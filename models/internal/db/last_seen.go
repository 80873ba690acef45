package db

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"portal/models/value"
)

// LastSeenBuffer holds when and where sessions were last seen until the background flush writes
// them, so that reading a page needs no database write. Another buffer holds when keys last used
// agents. It is not a part of the usage recorder, which counts: here the latest time is all, so
// that a write can be repeated.
type LastSeenBuffer struct {
	mu      sync.Mutex
	pending map[SeenID]LastSeen
	owners  map[uuid.UUID]int // number of pending entries by owner
}

const (
	// MaxSeen bounds the entries that wait for a flush, and is only reached if writes fail for
	// a long time. Beyond it each owner, an account or a user, may still have ownerSeen
	// entries, in seenReserve for all, so that one with very many does not use up the memory
	// for others.
	MaxSeen     = 1 << 18
	ownerSeen   = 100
	seenReserve = 1 << 16

	// seenBatch is how many entries one statement writes. That takes a fraction of
	// seenTimeout, its time limit.
	seenBatch = 1000
	// SeenTimeout limits the flush.
	SeenTimeout = 10 * time.Second
)

// SeenID is the id of a session, or of an agent and the key that used it.
type SeenID struct{ ID, KeyID uuid.UUID }

// LastSeen is the last use of a session or an agent.
type LastSeen struct {
	Owner   uuid.UUID
	At      time.Time
	Address string
}

// NewLastSeenBuffer returns an empty buffer.
func NewLastSeenBuffer() *LastSeenBuffer {
	return &LastSeenBuffer{pending: map[SeenID]LastSeen{}, owners: map[uuid.UUID]int{}}
}

// Set keeps seen for the next flush, unless a later one is kept or the buffer is full.
func (b *LastSeenBuffer) Set(id SeenID, seen LastSeen) {
	b.mu.Lock()
	defer b.mu.Unlock()
	former, found := b.pending[id]
	switch {
	case found && !seen.At.After(former.At):
		return
	case !found && !b.admits(seen.Owner):
		return
	case !found:
		b.owners[seen.Owner]++
	}
	b.pending[id] = seen
}

// admits reports whether one more entry of an owner may wait for a flush. The caller holds mu.
func (b *LastSeenBuffer) admits(owner uuid.UUID) bool {
	return len(b.pending) < MaxSeen || b.owners[owner] < ownerSeen && len(b.pending) < MaxSeen+seenReserve
}

// Latest returns the later of the stored time and the one in the buffer.
func (b *LastSeenBuffer) Latest(id SeenID, stored time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Later(stored, b.pending[id].At)
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Unwritten returns the times in the buffer for the ids that match.
func (b *LastSeenBuffer) Unwritten(matches func(SeenID) bool) map[SeenID]time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	times := map[SeenID]time.Time{}
	for id, seen := range b.pending {
		if matches(id) {
			times[id] = seen.At
		}
	}
	return times
}

// Flush passes the entries to write, in batches in the order of their ids, so that the flushes of
// two instances cannot deadlock. Each batch has a time limit of its own, and a batch that was
// written stays written if a later one fails. If ctx is canceled, a running batch may finish.
// Unless a written entry has changed meanwhile, flush removes it.
func (b *LastSeenBuffer) Flush(ctx context.Context, write func(context.Context, []LastSeenRow) error) error {
	rows := b.Rows()
	slices.SortFunc(rows, func(a, b LastSeenRow) int {
		return cmp.Or(value.CompareIDs(a.ID, b.ID), value.CompareIDs(a.KeyID, b.KeyID))
	})
	for batch := range slices.Chunk(rows, seenBatch) {
		if err := ctx.Err(); err != nil {
			return err
		}
		deadline := time.Now().Add(SeenTimeout)
		if limit, ok := ctx.Deadline(); ok && limit.Before(deadline) {
			deadline = limit
		}
		limited, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
		err := write(limited, batch)
		cancel()
		if err != nil {
			return err
		}
		b.remove(batch)
	}
	return nil
}

// Rows returns what waits for a flush, sorted by id.
func (b *LastSeenBuffer) Rows() []LastSeenRow {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows := make([]LastSeenRow, 0, len(b.pending))
	for id, seen := range b.pending {
		rows = append(rows, LastSeenRow{ID: id.ID, KeyID: id.KeyID, At: seen.At, Address: seen.Address})
	}
	return rows
}

func (b *LastSeenBuffer) remove(written []LastSeenRow) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, row := range written {
		id := SeenID{row.ID, row.KeyID}
		seen := b.pending[id]
		if seen.At != row.At || seen.Address != row.Address {
			continue
		}
		delete(b.pending, id)
		if b.owners[seen.Owner]--; b.owners[seen.Owner] == 0 {
			delete(b.owners, seen.Owner)
		}
	}
}

// LastSeenRow is an entry of a [LastSeenBuffer], as a row of a statement.
type LastSeenRow struct {
	ID      uuid.UUID `bun:"type:uuid"`
	KeyID   uuid.UUID `bun:"type:uuid"`
	At      time.Time `bun:"type:timestamptz"`
	Address string    `bun:"type:text"`
}
