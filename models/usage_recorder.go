package models

import (
	"sync"
	"time"

	"github.com/google/uuid"
)

// usageRecorder counts requests in memory, so that an API request needs no database write. The
// background flush moves the counts to the database. Its size is bounded by the number of keys and
// the hours since the last successful flush.
type usageRecorder struct {
	// flushMu is held for writing during a flush, and for reading while a report adds stored and
	// pending counts. Otherwise a report could count a request twice or not at all.
	flushMu sync.RWMutex

	mu sync.Mutex
	// pending collects new counts, writing is what the running flush writes, and written is what
	// the previous flush wrote. A list that read the database just before that flush committed
	// still finds the last use in written.
	pending, writing, written map[uuid.UUID]*keyUsage
	// pendingSince and writingSince are the times of the oldest counts in pending and writing.
	pendingSince, writingSince time.Time
}

// keyUsage is the usage of one key that is not in the database yet.
type keyUsage struct {
	last  time.Time // of the latest accepted request; zero if there was none
	hours map[time.Time]requestCounts
}

type requestCounts struct{ Requests, Refusals int64 }

func (n *requestCounts) add(m requestCounts) {
	n.Requests += m.Requests
	n.Refusals += m.Refusals
}

func newUsageRecorder() *usageRecorder {
	return &usageRecorder{pending: map[uuid.UUID]*keyUsage{}}
}

func (r *usageRecorder) accepted(keyID uuid.UUID, at time.Time) {
	r.count(keyID, at, at, requestCounts{Requests: 1})
}

func (r *usageRecorder) refused(keyID uuid.UUID, at time.Time) {
	r.count(keyID, at, time.Time{}, requestCounts{Refusals: 1})
}

// AddUsage counts earlier requests with a key. It is for demo data.
func (s *Store) AddUsage(keyID uuid.UUID, last time.Time, requests, refusals int64) {
	accepted := last
	if requests == 0 {
		accepted = time.Time{}
	}
	s.usage.count(keyID, last, accepted, requestCounts{Requests: requests, Refusals: refusals})
}

func (r *usageRecorder) count(keyID uuid.UUID, at, last time.Time, n requestCounts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addPending(keyID, at.Truncate(time.Hour), last, n)
}

// addPending adds to the pending counts. The caller holds mu.
func (r *usageRecorder) addPending(keyID uuid.UUID, hour, last time.Time, n requestCounts) {
	if len(r.pending) == 0 {
		r.pendingSince = time.Now()
	}
	usage := r.pending[keyID]
	if usage == nil {
		usage = &keyUsage{hours: map[time.Time]requestCounts{}}
		r.pending[keyID] = usage
	}
	if last.After(usage.last) {
		usage.last = last
	}
	sum := usage.hours[hour]
	sum.add(n)
	usage.hours[hour] = sum
}

// latest returns the later of the stored last use and the one in memory.
func (r *usageRecorder) latest(keyID uuid.UUID, stored *time.Time) *time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, usages := range []map[uuid.UUID]*keyUsage{r.written, r.writing, r.pending} {
		usage := usages[keyID]
		if usage != nil && !usage.last.IsZero() && (stored == nil || usage.last.After(*stored)) {
			last := usage.last
			stored = &last
		}
	}
	return stored
}

// eachHour calls visit with each hour of the key's unwritten counts. The caller holds flushMu.
func (r *usageRecorder) eachHour(keyID uuid.UUID, visit func(hour time.Time, n requestCounts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if usage := r.pending[keyID]; usage != nil {
		for hour, n := range usage.hours {
			visit(hour, n)
		}
	}
}

// flush passes the pending counts to write, and keeps them if write fails. Only one flush runs at
// a time.
func (r *usageRecorder) flush(write func(map[uuid.UUID]*keyUsage) error) error {
	r.flushMu.Lock()
	defer r.flushMu.Unlock()
	r.mu.Lock()
	if len(r.pending) == 0 {
		r.mu.Unlock()
		return nil
	}
	r.writing, r.pending = r.pending, map[uuid.UUID]*keyUsage{}
	r.writingSince = r.pendingSince
	r.mu.Unlock()

	// mu is not held here: only flush replaces writing, and nothing changes its contents.
	err := write(r.writing)

	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.written = r.writing
	} else {
		for keyID, usage := range r.writing {
			for hour, n := range usage.hours {
				r.addPending(keyID, hour, usage.last, n)
			}
		}
		r.pendingSince = r.writingSince
	}
	r.writing = nil
	return err
}

// unwritten returns the number of keys with counts that are not in the database, and the time of
// the oldest of these counts.
func (r *usageRecorder) unwritten() (keys int, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.writing) > 0 {
		return max(len(r.writing), len(r.pending)), r.writingSince
	}
	return len(r.pending), r.pendingSince
}
