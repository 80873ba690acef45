package usage

import "context"

// Flush writes all counts, as Run does at intervals.
func (r *Recorder) Flush(ctx context.Context) error { return r.flush(ctx, false) }

// The limits that tests and benchmarks need.
const (
	MaxPending     = maxPending
	Reserve        = reserve
	BatchSources   = batchSources
	AccountSources = accountSources
)
