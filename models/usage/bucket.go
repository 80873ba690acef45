package usage

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/uuid"
)

// bucket holds the counts of one hour that are written together.
type bucket struct {
	hour  int64     // hours since 1970
	since time.Time // of the first count

	counts map[uuid.UUID]counts // until it is sorted
	keys   map[uuid.UUID]int    // number of keys in counts by account

	// The fields below are set when it is sorted. Nothing is added after that.
	entries []Entry   // sorted by key
	written int       // number of entries that were written
	done    time.Time // when the last entry was written
}

func newBucket(hour int64) *bucket {
	return &bucket{hour: hour, since: time.Now(), counts: map[uuid.UUID]counts{}, keys: map[uuid.UUID]int{}}
}

// start returns the start of the hour.
func (b *bucket) start() time.Time { return time.UnixMicro(b.hour * microsPerHour).UTC() }

// sorted returns the entries in the order of the keys.
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

// next returns the next batch of a sorted bucket.
func (b *bucket) next() []Entry {
	return b.entries[b.written:min(b.written+batchKeys, len(b.entries))]
}

// unwritten returns the number of keys that are not in the database yet.
func (b *bucket) unwritten() int { return len(b.counts) + len(b.entries) - b.written }
