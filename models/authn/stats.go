package authn

import (
	"math/bits"
	"sync/atomic"
)

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
