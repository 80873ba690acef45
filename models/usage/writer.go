package usage

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Writer writes batches to one kind of database. A [Recorder] makes one call at a time.
type Writer interface {
	// Write adds the entries of an hour, sorted by key, and their requests by source, which may
	// be of earlier days, to the stored counts in one transaction, except those of keys that
	// were deleted. After an error, the outcome is unknown.
	Write(ctx context.Context, hour time.Time, entries []Entry, sources []SourceEntry) error

	// Close releases the connection.
	Close() error
}

// batchSources is how many sources one transaction writes, where a key without any counts as one.
// That takes about a tenth of a second, which is far from the time limits of a batch and its locks.
const batchSources = 1000

// Entry is the usage of one key in one hour.
type Entry struct {
	Key uuid.UUID
	counts
}

// counts are the requests of one key in one hour.
type counts struct {
	// Time of the latest accepted request in microseconds since 1970; zero if none.
	Last     int64
	Requests int64 // accepted
	Refusals int64

	uses    int64  // accepted, or refused after that, while the key has one source
	first   int64  // time of the first of them
	source  uint32 // the id of this source in the bucket
	sources uint32 // if not zero, the key has several sources: their position in byKey, plus 1
}

func (c *counts) add(other counts) {
	c.Last = max(c.Last, other.Last)
	c.Requests += other.Requests
	c.Refusals += other.Refusals
}

func (c *counts) counted() bool { return c.Requests != 0 || c.Refusals != 0 }

func (c *counts) bySource() bool { return c.uses != 0 || c.sources != 0 }

func (c *counts) lastUse() time.Time { return time.UnixMicro(c.Last).UTC() }
