package usage

import (
	"context"

	"github.com/google/uuid"
)

// Flush writes all counts, without yielding to others.
func (r *Recorder) Flush(ctx context.Context) error { return r.flush(ctx, false, false) }

// Pretend makes the recorder count as if n more keys waited for a flush.
func (r *Recorder) Pretend(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending += n
}

// Rest makes n other keys rest.
func (r *Recorder) Rest(n int) {
	for i := range n {
		r.rests.held[uuid.UUID{8: 1, 9: byte(i), 10: byte(i >> 8), 11: byte(i >> 16)}] = nil
	}
}

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
	AccountKeys    = accountKeys
	MaxResting     = maxResting
	BatchSources   = batchSources
	AccountSources = accountSources
)
