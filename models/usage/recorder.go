package usage

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// kept is how long written generations stay in memory. It must be longer than the statement
	// of a report.
	kept = 4 * time.Second
	// maxPending bounds the number of keys with counts that wait for a flush. It is only
	// reached if writes fail for a long time.
	maxPending = 1 << 20
	// maxHours bounds the number of hours with such counts.
	maxHours = 1000
)

// Recorder counts requests in memory. It is safe for concurrent use.
type Recorder struct {
	id     uuid.UUID
	writer Writer
	yield  bool
	turn   chan struct{} // holds one token unless a flush runs

	mu      sync.Mutex
	open    []*generation // collect counts, one for each hour, the oldest first
	pending int           // keys in open
	writing *generation   // nil if there is none
	retired []*generation // written a short time ago
	next    int64         // number of the next piece
	stats   Stats
}

// New returns a recorder that writes with w and closes it. With yield, the recorder pauses after
// each piece for as long as the piece took, so that others can write too.
func New(w Writer, yield bool) *Recorder {
	r := &Recorder{id: uuid.New(), writer: w, yield: yield, turn: make(chan struct{}, 1), next: 1}
	r.turn <- struct{}{}
	return r
}

// ID returns the id of the recorder's row in usage_flushes.
func (r *Recorder) ID() uuid.UUID { return r.id }

// Count adds requests with a key at a time. Refused requests do not count as a use of the key.
func (r *Recorder) Count(key uuid.UUID, at time.Time, requests, refusals int64) {
	n := counts{Requests: requests, Refusals: refusals}
	if requests > 0 {
		n.Last = at.UnixMicro()
	}
	hour := at.UTC().Truncate(time.Hour)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(hour, key, n)
}

// add adds counts to the open generation of the hour. The caller holds mu.
func (r *Recorder) add(hour time.Time, key uuid.UUID, n counts) {
	g := r.openAt(hour)
	sum, found := g.counts[key]
	if !found {
		if r.pending >= maxPending {
			r.stats.Dropped += n.Requests + n.Refusals
			return
		}
		r.pending++
	}
	sum.add(n)
	g.counts[key] = sum
}

// openAt returns the open generation of an hour. The caller holds mu.
func (r *Recorder) openAt(hour time.Time) *generation {
	for _, g := range slices.Backward(r.open) {
		if g.hour.Equal(hour) {
			return g
		}
	}
	if len(r.open) >= maxHours {
		return r.open[len(r.open)-1]
	}
	g := newGeneration(hour)
	r.open = append(r.open, g)
	return g
}

// LastUse returns the later of the stored last use of a key, which may be nil, and the one in
// memory.
func (r *Recorder) LastUse(key uuid.UUID, stored *time.Time) *time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	var latest counts
	for g := range r.generations {
		n, _ := g.find(key)
		latest.Last = max(latest.Last, n.Last)
	}
	if latest.Last == 0 || stored != nil && !latest.lastUse().After(*stored) {
		return stored
	}
	last := latest.lastUse()
	return &last
}

// Later calls visit with the key's counts in each hour that a report lacks. The report has all
// pieces of this recorder up to the number piece.
func (r *Recorder) Later(key uuid.UUID, piece int64, visit func(hour time.Time, requests, refusals int64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for g := range r.generations {
		n, number := g.find(key)
		if n != (counts{}) && (number == 0 || number > piece) {
			visit(g.hour, n.Requests, n.Refusals)
		}
	}
}

// generations yields all generations in memory. The caller holds mu.
func (r *Recorder) generations(yield func(*generation) bool) {
	for _, g := range r.retired {
		if !yield(g) {
			return
		}
	}
	if r.writing != nil && !yield(r.writing) {
		return
	}
	for _, g := range r.open {
		if !yield(g) {
			return
		}
	}
}

// Stats describe a recorder.
type Stats struct {
	Pending int           // keys with usage that is not in the database yet
	Lag     time.Duration // age of the oldest such usage
	Pieces  int64         // transactions since the start
	Written int64         // keys that they wrote
	Dropped int64         // requests that were not counted, because too many keys waited for a flush
}

// Stats returns the state of the recorder.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	stats := r.stats
	for g := range r.generations {
		if n := g.unwritten(); n > 0 {
			stats.Pending += n
			stats.Lag = max(stats.Lag, time.Since(g.since))
		}
	}
	return stats
}
