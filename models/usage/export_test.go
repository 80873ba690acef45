package usage

import "context"

// Flush writes all counts, as Run does at intervals.
func (r *Recorder) Flush(ctx context.Context) error { return r.flush(ctx, false, false) }

// Age makes the written buckets older than the next flush keeps them.
func (r *Recorder) Age() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.taken {
		b.done = b.done.Add(-kept)
	}
}

// What tests and benchmarks need to know.
const (
	MaxPending     = maxPending
	Reserve        = reserve
	MaxResting     = maxResting
	BatchSources   = batchSources
	AccountSources = accountSources
)
