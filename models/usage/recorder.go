package usage

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// kept is how long written buckets stay in memory. A report whose statement takes longer is
	// read again.
	kept = 4 * time.Second
	// maxPending bounds the number of keys with counts that wait for a flush, and is only
	// reached if writes fail for a long time.
	maxPending = 1 << 20
	// Beyond maxPending, each account may still have accountKeys keys, in reserve keys for all,
	// so that an account with very many keys does not use up the memory for others.
	accountKeys = 100
	reserve     = 1 << 18
	// maxHours bounds the number of hours with such counts.
	maxHours = 1000

	microsPerHour = int64(time.Hour / time.Microsecond)

	// How often a report is read, and how long it waits between two times.
	readAttempts = 5
	readPause    = 20 * time.Millisecond
)

// Recorder counts requests in memory. It is safe for concurrent use.
type Recorder struct {
	writer Writer
	yield  bool
	turn   chan struct{} // holds one token unless a flush runs

	mu      sync.Mutex
	open    []*bucket // collect counts, one for each hour, the oldest first
	pending int       // keys in open
	sources int       // that were admitted to open
	taken   []*bucket // were written a short time ago, but the last one perhaps in part
	stats   Stats

	forgotten Mark // the last batch of the buckets that are no longer in taken

	rests rests
}

// New returns a recorder that writes with w and closes it. With yield, the recorder pauses after
// each batch for as long as the batch took, so that others can write too. After the sources of a
// key were written, those that come during the rest wait for its end.
func New(w Writer, yield bool, rest time.Duration) *Recorder {
	r := &Recorder{writer: w, yield: yield, turn: make(chan struct{}, 1), rests: rests{rest: rest, held: map[uuid.UUID][]SourceEntry{}}}
	r.turn <- struct{}{}
	return r
}

// Count adds requests with an account's key from a source at a time. Refusals do not count as a use
// of the key, and not by source. If a request that was counted is refused later, the caller adds -1
// request and a refusal: the request stays a use of the key from its source.
func (r *Recorder) Count(account, key uuid.UUID, from Source, at time.Time, requests, refusals int64) {
	n := counts{Requests: requests, Refusals: refusals}
	micros := at.UnixMicro()
	if requests > 0 {
		n.Last = micros
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.openAt(micros / microsPerHour)
	sum, found := b.counts[key]
	if !found {
		if !r.admit(b.keys[account]) {
			r.stats.Dropped += requests + refusals
			return
		}
		b.keys[account]++
		r.pending++
	}
	if requests > 0 {
		r.countSource(b, account, &sum, from, requests, micros)
	}
	sum.add(n)
	b.counts[key] = sum
}

// admit reports whether one more key of an account that has this many keys may wait for a flush.
func (r *Recorder) admit(keys int) bool {
	return r.pending < maxPending || keys < accountKeys && r.pending < maxPending+reserve
}

// openAt returns the open bucket of an hour. The caller holds mu.
func (r *Recorder) openAt(hour int64) *bucket {
	for i := len(r.open) - 1; i >= 0; i-- {
		if r.open[i].hour == hour {
			return r.open[i]
		}
	}
	if len(r.open) >= maxHours {
		return r.open[len(r.open)-1]
	}
	b := newBucket(hour)
	r.open = append(r.open, b)
	return b
}

// LastUse returns the later of the stored last use of a key, which may be nil, and the one in
// memory.
func (r *Recorder) LastUse(key uuid.UUID, stored *time.Time) *time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	var latest counts
	for _, b := range r.buckets() {
		n, _ := b.find(key)
		latest.Last = max(latest.Last, n.Last)
	}
	if latest.Last == 0 || stored != nil && !latest.lastUse().After(*stored) {
		return stored
	}
	return new(latest.lastUse())
}

// Mark is a moment between two batches.
type Mark int64

// Read calls read, which reads stored counts and adds those in memory with [Recorder.Unwritten] and
// the mark. If a batch that was written meanwhile leaves it uncertain what read has counted, Read
// calls it again a few times.
func (r *Recorder) Read(ctx context.Context, read func(since Mark) (certain bool, err error)) error {
	for attempt := 1; ; attempt++ {
		certain, err := read(r.mark())
		if err != nil || certain || attempt == readAttempts {
			return err
		}
		select {
		case <-ctx.Done():
			return nil // with the last result
		case <-time.After(readPause):
		}
	}
}

func (r *Recorder) mark() Mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Mark(r.stats.Batches)
}

// Unwritten calls visit with the key's counts in each hour that a report lacks, and reports whether
// that is certain. The report has read the stored last use, which may be nil, after the mark.
func (r *Recorder) Unwritten(key uuid.UUID, stored *time.Time, since Mark, visit func(hour time.Time, requests, refusals int64)) (certain bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unwritten(key, stored, since, (*counts).counted, func(b *bucket, n counts) { visit(b.start(), n.Requests, n.Refusals) })
}

// unwritten visits what a report lacks of the counts that are relevant to it. The caller holds mu.
func (r *Recorder) unwritten(
	key uuid.UUID, stored *time.Time, since Mark, relevant func(*counts) bool, visit func(*bucket, counts),
) (certain bool) {
	certain = since >= r.forgotten
	for _, b := range r.buckets() {
		n, i := b.find(key)
		if !relevant(&n) || i >= 0 && i < b.writtenAt(since) {
			continue
		}
		lacking := true
		if i >= 0 && (i < b.written || b.begun && i < b.written+len(b.batch)) {
			// The batch was written after the mark, or is being written.
			if lacking = n.Last != 0 && (stored == nil || stored.UnixMicro() < n.Last); !lacking {
				certain, lacking = false, n.Last == 0 && i >= b.written
			}
		}
		if lacking {
			visit(b, n)
		}
	}
	return certain
}

// buckets returns all buckets in memory. The caller holds mu.
func (r *Recorder) buckets() []*bucket { return slices.Concat(r.taken, r.open) }

// Stats describe a recorder.
type Stats struct {
	Pending int           // keys with usage that is not in the database yet
	Lag     time.Duration // age of the oldest such usage
	Batches int64         // transactions since the start
	Written int64         // keys that they wrote
	// Requests that were not counted, because too many keys waited for a flush.
	Dropped int64
}

// Stats returns the state of the recorder.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	stats := r.stats
	for _, b := range r.buckets() {
		if n := b.unwritten(); n > 0 {
			stats.Pending += n
			stats.Lag = max(stats.Lag, time.Since(b.since))
		}
	}
	return stats
}

// bucket holds the counts of one hour that are written together.
type bucket struct {
	hour  int64     // hours since 1970
	since time.Time // of the first count

	counts map[uuid.UUID]counts // until it is sorted
	keys   map[uuid.UUID]int    // number of keys in counts by account

	sources   []Source          // by id; the first one is all others
	lastID    uint32            // of sources
	byKey     [][]sourceCounts  // of keys with several sources
	lists     uint32            // number of them
	ids       map[Source]uint32 // until it is sorted
	sourcesOf map[uuid.UUID]int // number of admitted sources by account, until it is sorted

	// The fields below are set when it is sorted. Nothing is added after that.
	entries []Entry // sorted by key
	written int     // number of entries that were written
	batch   []Entry // the entries after them that are written next
	begun   bool    // an attempt to write batch has begun
	ends    []batchEnd
	done    time.Time // when the last batch was written
}

// batchEnd is the end of a batch that was written.
type batchEnd struct {
	written int // entries of the bucket by then
	at      Mark
}

// writtenAt returns the number of entries that were written at the mark.
func (b *bucket) writtenAt(mark Mark) (entries int) {
	for _, end := range b.ends {
		if end.at <= mark {
			entries = end.written
		}
	}
	return entries
}

func newBucket(hour int64) *bucket {
	return &bucket{
		hour: hour, since: time.Now(), counts: map[uuid.UUID]counts{}, keys: map[uuid.UUID]int{},
		sources: []Source{{}}, ids: map[Source]uint32{{}: 0}, sourcesOf: map[uuid.UUID]int{},
	}
}

func (b *bucket) start() time.Time { return time.UnixMicro(b.hour * microsPerHour).UTC() }

func (b *bucket) sorted() []Entry {
	entries := make([]Entry, 0, len(b.counts))
	for key, n := range b.counts {
		entries = append(entries, Entry{key, n})
	}
	slices.SortFunc(entries, func(a, b Entry) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	return entries
}

// find returns the counts of a key and the index of its entry, which is -1 until the bucket is
// sorted.
func (b *bucket) find(key uuid.UUID) (n counts, index int) {
	if b.entries == nil {
		return b.counts[key], -1
	}
	i, found := slices.BinarySearchFunc(b.entries, key, func(e Entry, key uuid.UUID) int { return bytes.Compare(e.Key[:], key[:]) })
	if !found {
		return counts{}, i
	}
	return b.entries[i].counts, i
}

// next returns the entries of the next batch of a sorted bucket.
func (b *bucket) next() []Entry {
	rest, sources := b.entries[b.written:], 0
	for i, entry := range rest {
		if entry.sources == 0 {
			sources++
		} else {
			sources += len(b.byKey[entry.sources-1])
		}
		if sources > batchSources {
			return rest[:i]
		}
	}
	return rest
}

// unwritten returns the number of keys that are not in the database yet.
func (b *bucket) unwritten() int { return len(b.counts) + len(b.entries) - b.written }
