package usage

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/uuid"
)

// pieceKeys is how many keys one transaction writes. A piece takes a few hundredths of a second.
const pieceKeys = 2048

// generation holds the counts of one hour that are written together.
type generation struct {
	hour  time.Time
	since time.Time // of the first count

	counts map[uuid.UUID]counts // until it is sorted

	// The fields below are set when it is sorted. Nothing is added after that.
	entries []Entry   // sorted by key
	first   int64     // number of the first piece
	written int       // number of pieces that were written
	done    time.Time // when the last piece was written

	uncertain bool // whether the outcome of the current piece is unknown
	failures  int  // of the current piece
}

func newGeneration(hour time.Time) *generation {
	return &generation{hour: hour, since: time.Now(), counts: map[uuid.UUID]counts{}}
}

// sorted returns the entries in the order of the keys.
func (g *generation) sorted() []Entry {
	entries := make([]Entry, 0, len(g.counts))
	for key, n := range g.counts {
		entries = append(entries, Entry{key, n})
	}
	slices.SortFunc(entries, func(a, b Entry) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	return entries
}

// pieces returns the number of pieces of a sorted generation.
func (g *generation) pieces() int { return (len(g.entries) + pieceKeys - 1) / pieceKeys }

// piece returns one of the pieces of a sorted generation.
func (g *generation) piece(i int) (number int64, entries []Entry) {
	return g.first + int64(i), g.entries[i*pieceKeys : min((i+1)*pieceKeys, len(g.entries))]
}

// find returns the counts of a key and the number of its piece, which is zero until the generation
// is sorted.
func (g *generation) find(key uuid.UUID) (n counts, piece int64) {
	if g.entries == nil {
		return g.counts[key], 0
	}
	i, found := g.position(key)
	if !found {
		return counts{}, 0
	}
	return g.entries[i].counts, g.first + int64(i/pieceKeys)
}

// position returns the index of a key's entry in a sorted generation.
func (g *generation) position(key uuid.UUID) (int, bool) {
	return slices.BinarySearchFunc(g.entries, key, func(e Entry, key uuid.UUID) int { return bytes.Compare(e.Key[:], key[:]) })
}

// unwritten returns the number of keys that are not in the database yet.
func (g *generation) unwritten() int {
	return len(g.counts) + max(0, len(g.entries)-g.written*pieceKeys)
}
