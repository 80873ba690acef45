package authn

import (
	"context"
	"fmt"
	"math/bits"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Authenticator looks up API keys. It is safe for concurrent use.
type Authenticator struct {
	reader  Reader
	timeout time.Duration

	mu sync.Mutex // every request takes it, so it is held for a few instructions only
	// A statement is running, or its requests have not all seen their results.
	running bool
	next    *batch // the requests that wait for the next statement; nil if there are none
	// The last batch had several requests, so the next request waits for others.
	gathered bool

	memory memory

	counts counters
}

// New returns an authenticator. A batch fails if the reader does not answer within the timeout,
// which starts when the first request of the batch arrives.
func New(reader Reader, timeout time.Duration) *Authenticator {
	return &Authenticator{reader: reader, timeout: timeout}
}

// Close closes the reader.
func (a *Authenticator) Close() error { return a.reader.Close() }

// Lookup returns the key with this hash, which may be inactive, and the epoch at which it was read.
// It returns [ErrKeyUnknown] if there is no such key, [ErrBusy] if too many requests wait, and
// another error if the database did not answer in time.
func (a *Authenticator) Lookup(ctx context.Context, hash KeyHash) (Key, Epoch, error) {
	return a.lookup(ctx, KeyRef{Hash: hash})
}

// LookupID is [Authenticator.Lookup] for the key with this id, which must not be zero.
func (a *Authenticator) LookupID(ctx context.Context, id uuid.UUID) (Key, Epoch, error) {
	return a.lookup(ctx, KeyRef{ID: id})
}

func (a *Authenticator) lookup(ctx context.Context, ref KeyRef) (Key, Epoch, error) {
	if err := ctx.Err(); err != nil {
		return Key{}, Epoch{}, err
	}
	b, position := a.join(ref)
	if b == nil {
		return Key{}, Epoch{}, ErrBusy
	}
	if b.done == nil {
		if deadline, ok := ctx.Deadline(); ok && deadline.Before(b.deadline) {
			b.deadline = deadline
		}
		a.runAlone(b)
	} else {
		a.wait(b)
	}
	if b.err != nil {
		return Key{}, Epoch{}, b.err
	}
	r := b.results[position]
	if !r.found {
		return Key{}, b.moment.Epoch, ErrKeyUnknown
	}
	// The key may have expired since it was remembered.
	return r.key.at(b.moment.Time), b.moment.Epoch, nil
}

// HasAgent reports whether memory holds the agent at this epoch. False means that the caller has to
// ask the database.
func (a *Authenticator) HasAgent(epoch Epoch, agent Agent) bool {
	return a.memory.hasAgent(epoch, agent)
}

// RememberAgent adds an agent that was read in one statement with this epoch. It does nothing if
// memory has another epoch.
func (a *Authenticator) RememberAgent(epoch EpochValue, agent Agent) {
	a.memory.addAgent(epoch, agent)
}

// resolve sets the results of the batch. Only one batch is resolved at a time. A panic fails the
// requests of the batch, not the process.
func (a *Authenticator) resolve(b *batch) {
	defer func() {
		if v := recover(); v != nil {
			b.err = panicked(v)
		}
	}()
	missing, remembered := a.recall(b)
	var keys map[KeyRef]Key
	a.counts.batch(len(b.wanted))
	a.counts.statements.Add(1)
	b.moment, keys, b.err = a.read(b.deadline, missing)
	if b.err == nil && len(missing) < len(b.wanted) && b.moment.Epoch != remembered {
		// The results from memory may be out of date.
		clear(b.results)
		missing = b.wanted
		a.counts.statements.Add(1)
		b.moment, keys, b.err = a.read(b.deadline, missing)
	}
	if b.err != nil {
		a.counts.failures.Add(1)
	}
	if b.err != nil || len(missing) == 0 {
		return
	}
	a.remember(b.moment, keys)
	for i, ref := range b.wanted {
		if r := &b.results[i]; !r.found {
			r.key, r.found = keys[ref]
		}
	}
}

// recall sets the results of the batch that are in memory, and returns the other keys and the epoch
// of memory.
func (a *Authenticator) recall(b *batch) (missing []KeyRef, epoch Epoch) {
	b.results = make([]result, len(b.wanted))
	for i, ref := range b.wanted {
		r := &b.results[i]
		if r.key, r.found = a.memory.key(ref); !r.found {
			missing = append(missing, ref)
		}
	}
	return missing, a.memory.epoch
}

// remember adds the active keys that were read at this moment.
func (a *Authenticator) remember(moment Moment, keys map[KeyRef]Key) {
	if a.memory.keys != nil && a.memory.epoch != moment.Epoch {
		a.counts.epochChanges.Add(1)
	}
	a.memory.at(moment.Epoch)
	for ref, key := range keys {
		if key.at(moment.Time).Active {
			a.memory.addKey(ref, key)
		}
	}
}

// panicked returns an error with the value of a panic and its stack.
func panicked(value any) error {
	return fmt.Errorf("panic in a batch of lookups: %v\n%s", value, debug.Stack())
}

// Stats are counts since the start of the process.
type Stats struct {
	Lookups      uint64     // requests for a key
	BatchSizes   [12]uint64 // batches by size: entry i for more than (1<<i)/2, up to 1<<i
	Statements   uint64     // statements that answered them
	EpochChanges uint64     // times that memory was dropped because the epoch had changed
	Failures     uint64     // batches without an answer from the database
}

type counters struct {
	lookups, statements, epochChanges, failures atomic.Uint64
	batchSizes                                  [len(Stats{}.BatchSizes)]atomic.Uint64
}

// batch counts a batch of 1 to [maxBatch] requests.
func (c *counters) batch(size int) {
	c.lookups.Add(uint64(size)) //nolint:gosec // a length
	c.batchSizes[bits.Len(uint(size-1))].Add(1)
}

// Stats returns the counts.
func (a *Authenticator) Stats() Stats {
	stats := Stats{
		Lookups: a.counts.lookups.Load(), Statements: a.counts.statements.Load(),
		EpochChanges: a.counts.epochChanges.Load(), Failures: a.counts.failures.Load(),
	}
	for i := range stats.BatchSizes {
		stats.BatchSizes[i] = a.counts.batchSizes[i].Load()
	}
	return stats
}
