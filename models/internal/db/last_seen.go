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
//
// With a rest, what was written stays in memory for that time, and what changes meanwhile is
// written after it, so that a flush writes few rows of those that change all the time.
type LastSeenBuffer struct {
	rest time.Duration

	mu      sync.Mutex
	pending map[SeenID]LastSeen
	resting map[SeenID]restingSeen
	queue   []restingID       // the ids of resting, the first written first
	owners  map[uuid.UUID]int // number of entries by owner
	newest  map[uuid.UUID]newestSeen
}

// newestSeen is the latest time of the entries with an id, of any keys.
type newestSeen struct {
	entries int
	at      time.Time
}

// restingSeen is an entry that was written a short time ago.
type restingSeen struct {
	LastSeen
	changed bool // since then
}

// restingID is the id of an entry and when it was written.
type restingID struct {
	SeenID
	since time.Time
}

const (
	// MaxSeen bounds the entries that wait for a flush, and is only reached if writes fail for
	// a long time. Beyond it each owner, an account or a user, may still have ownerSeen
	// entries, in seenReserve for all, so that one with very many does not use up the memory
	// for others.
	MaxSeen     = 1 << 18
	ownerSeen   = 100
	seenReserve = 1 << 16
	// maxResting bounds the entries that rest. Others are written at every flush, as without a
	// rest.
	maxResting = MaxSeen / 2

	// seenBatch is how many entries one statement writes. That takes a fraction of
	// SeenTimeout, its time limit.
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

// NewLastSeenBuffer returns an empty buffer, whose entries rest for this time; 0: not at all.
func NewLastSeenBuffer(rest time.Duration) *LastSeenBuffer {
	return &LastSeenBuffer{
		rest: rest, pending: map[SeenID]LastSeen{}, resting: map[SeenID]restingSeen{},
		owners: map[uuid.UUID]int{}, newest: map[uuid.UUID]newestSeen{},
	}
}

// Set keeps seen for a flush, unless a later one is kept or the buffer is full.
func (b *LastSeenBuffer) Set(id SeenID, seen LastSeen) {
	b.mu.Lock()
	defer b.mu.Unlock()
	former, found := b.find(id)
	if found && !seen.At.After(former.At) || !found && !b.admits(seen.Owner) {
		return
	}
	newest := b.newest[id.ID]
	newest.at = Later(newest.at, seen.At)
	if !found {
		b.owners[seen.Owner]++
		newest.entries++
	}
	b.newest[id.ID] = newest
	if _, rests := b.resting[id]; rests {
		b.resting[id] = restingSeen{LastSeen: seen, changed: true}
	} else {
		b.pending[id] = seen
	}
}

// find returns an entry. The caller holds mu.
func (b *LastSeenBuffer) find(id SeenID) (LastSeen, bool) {
	if seen, found := b.pending[id]; found {
		return seen, true
	}
	rests, found := b.resting[id]
	return rests.LastSeen, found
}

// admits reports whether one more entry of an owner may wait for a flush. The caller holds mu.
func (b *LastSeenBuffer) admits(owner uuid.UUID) bool {
	all := len(b.pending) + len(b.resting)
	return all < MaxSeen || b.owners[owner] < ownerSeen && all < MaxSeen+seenReserve
}

// Latest returns the later of the stored time and the one in the buffer.
func (b *LastSeenBuffer) Latest(id SeenID, stored time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen, _ := b.find(id)
	return Later(stored, seen.At)
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Newest returns the latest time in the buffer for an id and any key, or the zero time.
func (b *LastSeenBuffer) Newest(id uuid.UUID) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.newest[id].at
}

// Flush passes the entries to write, in batches in the order of their ids, so that the flushes of
// two instances cannot deadlock. Each batch has a time limit of its own, and a batch that was
// written stays written if a later one fails. If ctx is canceled, a running batch may finish.
// An entry that was written begins its rest at now; without one it is removed, unless it has
// changed meanwhile.
func (b *LastSeenBuffer) Flush(ctx context.Context, now time.Time, write func(context.Context, []LastSeenRow) error) error {
	b.wake(func(since time.Time) bool {
		rested := now.Sub(since)
		return rested >= b.rest || rested < 0 // the clock was set back
	})
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
		b.written(batch, now)
	}
	return nil
}

// Wake ends every rest, so that the next flush writes all that has changed.
func (b *LastSeenBuffer) Wake() { b.wake(func(time.Time) bool { return true }) }

// wake ends the rests that are over. What has changed meanwhile waits for a flush.
func (b *LastSeenBuffer) wake(over func(since time.Time) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) > 0 && over(b.queue[0].since) {
		id := b.queue[0].SeenID
		b.queue = b.queue[1:]
		seen := b.resting[id]
		delete(b.resting, id)
		if seen.changed {
			b.pending[id] = seen.LastSeen
		} else {
			b.forget(id.ID, seen.Owner)
		}
	}
}

// Rows returns what waits for a flush.
func (b *LastSeenBuffer) Rows() []LastSeenRow {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows := make([]LastSeenRow, 0, len(b.pending))
	for id, seen := range b.pending {
		rows = append(rows, LastSeenRow{ID: id.ID, KeyID: id.KeyID, At: seen.At, Address: seen.Address})
	}
	return rows
}

func (b *LastSeenBuffer) written(batch []LastSeenRow, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, row := range batch {
		id := SeenID{row.ID, row.KeyID}
		seen, waits := b.pending[id]
		if !waits {
			continue // another flush has written it
		}
		changed := seen.At != row.At || seen.Address != row.Address
		switch {
		case b.rest > 0 && len(b.resting) < maxResting:
			b.resting[id] = restingSeen{LastSeen: seen, changed: changed}
			b.queue = append(b.queue, restingID{id, now})
		case changed:
			continue
		default:
			b.forget(id.ID, seen.Owner)
		}
		delete(b.pending, id)
	}
}

// forget counts an entry that is removed. The caller holds mu.
func (b *LastSeenBuffer) forget(id, owner uuid.UUID) {
	if b.owners[owner]--; b.owners[owner] == 0 {
		delete(b.owners, owner)
	}
	newest := b.newest[id]
	if newest.entries--; newest.entries == 0 {
		delete(b.newest, id)
	} else {
		b.newest[id] = newest
	}
}

// LastSeenRow is an entry of a [LastSeenBuffer], as a row of a statement.
type LastSeenRow struct {
	ID      uuid.UUID `bun:"type:uuid"`
	KeyID   uuid.UUID `bun:"type:uuid"`
	At      time.Time `bun:"type:timestamptz"`
	Address string    `bun:"type:text"`
}
