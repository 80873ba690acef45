package usage

import (
	"time"

	"github.com/google/uuid"
)

const (
	// maxResting bounds the keys that rest, and maxHeld the sources that wait. Beyond them,
	// sources are written with the counts, as without a rest.
	maxResting = 1 << 17
	maxHeld    = 1 << 18
	// restChunk is how many keys are handled before requests that wait for the lock get it.
	restChunk = 100
)

// rests are the keys whose sources were written a short time ago. Only flush changes them.
type rests struct {
	rest    time.Duration
	held    map[uuid.UUID][]SourceEntry // by key: what came since then
	queue   []restingKey                // the first written first
	sources int                         // in held
	hour    int64                       // of the last batch
}

type restingKey struct {
	key   uuid.UUID
	since time.Time
}

// over reports whether the first rest is over, or, with all, whether there is one.
func (r *rests) over(all bool) bool {
	return len(r.queue) > 0 && (all || time.Since(r.queue[0].since) >= r.rest)
}

// wake ends the rests that are over, or all, and adds what has waited to a bucket that was taken
// and is not sorted yet.
func (r *Recorder) wake(b *bucket, all bool) {
	for more := true; more; {
		more = r.wakeSome(b, all)
	}
}

func (r *Recorder) wakeSome(b *bucket, all bool) (more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range restChunk {
		if !r.rests.over(all) {
			return false
		}
		key := r.rests.queue[0].key
		r.rests.queue = r.rests.queue[1:]
		if held := r.rests.held[key]; len(held) > 0 {
			r.rests.sources -= len(held)
			b.addSources(key, held)
		}
		delete(r.rests.held, key)
	}
	return true
}

// hold takes the sources of the keys that rest out of a sorted bucket.
func (r *Recorder) hold(b *bucket) {
	for i := 0; i < len(b.entries); i += restChunk {
		r.mu.Lock()
		for j := i; j < min(i+restChunk, len(b.entries)); j++ {
			n := &b.entries[j]
			held, rests := r.rests.held[n.Key]
			if !rests || r.rests.sources >= maxHeld {
				continue
			}
			before := len(held)
			b.eachSource(n.counts, func(one sourceCounts) {
				held = addSource(held, SourceEntry{Key: n.Key, Source: b.sources[one.id], sourceCounts: one})
			})
			r.rests.held[n.Key], r.rests.sources = held, r.rests.sources+len(held)-before
			n.uses, n.sources = 0, 0
		}
		r.mu.Unlock()
	}
}

// begin begins the rests of the keys whose sources were written in a batch. The caller holds mu.
func (r *Recorder) begin(b *bucket) {
	r.rests.hour = b.hour
	now := time.Now()
	for _, entry := range b.batch {
		if _, rests := r.rests.held[entry.Key]; rests || !entry.bySource() || r.rests.rest == 0 || len(r.rests.held) >= maxResting {
			continue
		}
		r.rests.held[entry.Key] = nil
		r.rests.queue = append(r.rests.queue, restingKey{entry.Key, now})
	}
}

// addSources adds the sources that waited to those of a key.
func (b *bucket) addSources(key uuid.UUID, held []SourceEntry) {
	n := b.counts[key]
	b.eachSource(n, func(one sourceCounts) {
		held = addSource(held, SourceEntry{Key: key, Source: b.sources[one.id], sourceCounts: one})
	})
	of := make([]sourceCounts, len(held))
	for i, one := range held {
		b.lastID++
		b.sources = append(b.sources, one.Source)
		of[i] = one.sourceCounts
		of[i].id = b.lastID
		n.Last = max(n.Last, one.last)
	}
	b.byKey = append(b.byKey, of)
	b.lists++
	n.sources = b.lists
	b.counts[key] = n
}

// addSource adds an entry to those of a key. At most sourcesByKey entries of a day have sources of
// their own.
func addSource(all []SourceEntry, added SourceEntry) []SourceEntry {
	ofDay := 0
	for i := range all {
		one := &all[i]
		switch {
		case !one.Day().Equal(added.Day()):
		case one.Source == added.Source:
			one.Requests += added.Requests
			one.first, one.last = min(one.first, added.first), max(one.last, added.last)
			return all
		default:
			ofDay++
		}
	}
	if ofDay >= sourcesByKey && added.Source != (Source{}) {
		added.Source = Source{}
		return addSource(all, added)
	}
	return append(all, added)
}
