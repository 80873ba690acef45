package models

import (
	"cmp"
	"context"
	"portal/models/value"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// lastSeenBuffer holds when and where sessions were last seen until the background flush writes
// them, so that reading a page needs no database write. Another buffer holds when keys last used
// agents. It is not a part of the usage recorder, which counts: here the latest time is all, so
// that a write can be repeated.
type lastSeenBuffer struct {
	mu      sync.Mutex
	pending map[seenID]lastSeen
	owners  map[uuid.UUID]int // number of pending entries by owner
}

const (
	// maxSeen bounds the entries that wait for a flush, and is only reached if writes fail for
	// a long time. Beyond it each owner, an account or a user, may still have ownerSeen
	// entries, in seenReserve for all, so that one with very many does not use up the memory
	// for others.
	maxSeen     = 1 << 18
	ownerSeen   = 100
	seenReserve = 1 << 16

	// seenBatch is how many entries one statement writes. That takes a fraction of
	// seenTimeout, its time limit.
	seenBatch   = 1000
	seenTimeout = 10 * time.Second
)

// seenID is the id of a session, or of an agent and the key that used it.
type seenID struct{ ID, KeyID uuid.UUID }

type lastSeen struct {
	owner   uuid.UUID
	at      time.Time
	address string
}

func newLastSeenBuffer() *lastSeenBuffer {
	return &lastSeenBuffer{pending: map[seenID]lastSeen{}, owners: map[uuid.UUID]int{}}
}

func (b *lastSeenBuffer) set(id seenID, seen lastSeen) {
	b.mu.Lock()
	defer b.mu.Unlock()
	former, found := b.pending[id]
	switch {
	case found && !seen.at.After(former.at):
		return
	case !found && !b.admits(seen.owner):
		return
	case !found:
		b.owners[seen.owner]++
	}
	b.pending[id] = seen
}

// admits reports whether one more entry of an owner may wait for a flush. The caller holds mu.
func (b *lastSeenBuffer) admits(owner uuid.UUID) bool {
	return len(b.pending) < maxSeen || b.owners[owner] < ownerSeen && len(b.pending) < maxSeen+seenReserve
}

// latest returns the later of the stored time and the one in the buffer.
func (b *lastSeenBuffer) latest(id seenID, stored time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return later(stored, b.pending[id].at)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// unwritten returns the times in the buffer for the ids that match.
func (b *lastSeenBuffer) unwritten(matches func(seenID) bool) map[seenID]time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	times := map[seenID]time.Time{}
	for id, seen := range b.pending {
		if matches(id) {
			times[id] = seen.at
		}
	}
	return times
}

// flush passes the entries to write, in batches in the order of their ids, so that the flushes of
// two instances cannot deadlock. Each batch has a time limit of its own, and a batch that was
// written stays written if a later one fails. If ctx is canceled, a running batch may finish.
// Unless a written entry has changed meanwhile, flush removes it.
func (b *lastSeenBuffer) flush(ctx context.Context, write func(context.Context, []lastSeenRow) error) error {
	rows := b.rows()
	slices.SortFunc(rows, func(a, b lastSeenRow) int {
		return cmp.Or(value.CompareIDs(a.ID, b.ID), value.CompareIDs(a.KeyID, b.KeyID))
	})
	for batch := range slices.Chunk(rows, seenBatch) {
		if err := ctx.Err(); err != nil {
			return err
		}
		deadline := time.Now().Add(seenTimeout)
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

func (b *lastSeenBuffer) rows() []lastSeenRow {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows := make([]lastSeenRow, 0, len(b.pending))
	for id, seen := range b.pending {
		rows = append(rows, lastSeenRow{ID: id.ID, KeyID: id.KeyID, At: seen.at, Address: seen.address})
	}
	return rows
}

func (b *lastSeenBuffer) remove(written []lastSeenRow) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, row := range written {
		id := seenID{row.ID, row.KeyID}
		seen := b.pending[id]
		if seen.at != row.At || seen.address != row.Address {
			continue
		}
		delete(b.pending, id)
		if b.owners[seen.owner]--; b.owners[seen.owner] == 0 {
			delete(b.owners, seen.owner)
		}
	}
}

// lastSeenRow is an entry of a [lastSeenBuffer], as a row of a statement.
type lastSeenRow struct {
	ID      uuid.UUID `bun:"type:uuid"`
	KeyID   uuid.UUID `bun:"type:uuid"`
	At      time.Time `bun:"type:timestamptz"`
	Address string    `bun:"type:text"`
}
