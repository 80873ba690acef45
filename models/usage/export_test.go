package usage

import "context"

// Flush writes all counts, as Run does at intervals.
func (r *Recorder) Flush(ctx context.Context) error { return r.flush(ctx, false) }

// What tests and benchmarks need to know.
const (
	Kept           = kept
	MaxPending     = maxPending
	Reserve        = reserve
	BatchSources   = batchSources
	AccountSources = accountSources
)
