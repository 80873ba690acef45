package usage

import (
	"context"
	"errors"
	"time"
)

const (
	// writeTimeout is the time limit of a batch. A batch that would need longer is counted
	// again at each attempt, so the limit is a multiple of the usual time.
	writeTimeout = 10 * time.Second
	// maxPause is the longest pause after a batch.
	maxPause = 50 * time.Millisecond
)

// FlushYielding writes the counts that were recorded before it began, and yields to others as
// [New] says. When ctx ends, a running batch may finish.
func (r *Recorder) FlushYielding(ctx context.Context) error { return r.flush(ctx, r.yield, false) }

// Close writes all counts and closes the writer.
func (r *Recorder) Close(ctx context.Context) error {
	return errors.Join(r.flush(ctx, false, true), r.writer.Close())
}

// flush writes all counts that were recorded before it began, with the sources of the keys that do
// not rest, or of all. An error loses none of them.
func (r *Recorder) flush(ctx context.Context, yield, all bool) error {
	select {
	case <-r.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { r.turn <- struct{}{} }()
	err := r.writeRest(ctx, yield)
	r.mu.Lock()
	if len(r.open) == 0 && r.rests.over(all) {
		r.open = append(r.open, newBucket(r.rests.hour))
	}
	waiting := len(r.open)
	r.mu.Unlock()
	for ; err == nil && waiting > 0; waiting-- {
		r.take(all)
		err = r.writeRest(ctx, yield)
	}
	return err
}

// take ends the counting in the oldest open bucket, and prepares the bucket for writing.
func (r *Recorder) take(all bool) {
	r.mu.Lock()
	b := r.open[0]
	r.open = r.open[1:]
	r.pending -= len(b.counts)
	for _, sources := range b.sourcesOf {
		r.sources -= sources
	}
	r.taken = append(r.taken, b)
	r.mu.Unlock()

	r.wake(b, all)
	// Counting has ended, so sorting needs no lock.
	entries := b.sorted()
	r.mu.Lock()
	b.entries, b.counts, b.keys, b.ids, b.sourcesOf = entries, nil, nil, nil, nil
	r.mu.Unlock()
	if !all {
		r.hold(b)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b.batch = b.next()
}

// writeRest writes the rest of the last taken bucket. Only flush changes taken buckets, so flush
// reads them without the lock.
func (r *Recorder) writeRest(ctx context.Context, yield bool) error {
	if len(r.taken) == 0 {
		return nil
	}
	b := r.taken[len(r.taken)-1]
	for b.unwritten() > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		started := time.Now()
		if err := r.write(ctx, b); err != nil {
			return err
		}
		if yield {
			// The pause is as long as the write, so that others get half of the time.
			time.Sleep(min(time.Since(started), maxPause))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.taken) > 0 && time.Since(r.taken[0].done) > kept {
		for _, end := range r.taken[0].ends {
			r.forgotten = end.at
		}
		r.taken = r.taken[1:]
	}
	return nil
}

// write writes the next batch of a bucket. If ctx is canceled, the batch finishes, unless its
// deadline has passed.
func (r *Recorder) write(ctx context.Context, b *bucket) error {
	deadline := time.Now().Add(writeTimeout)
	if limit, ok := ctx.Deadline(); ok && limit.Before(deadline) {
		deadline = limit
	}
	limited, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	r.mu.Lock()
	b.begun = true
	r.mu.Unlock()
	if err := r.writer.Write(limited, b.start(), b.batch, b.entriesBySource(b.batch)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin(b)
	r.stats.Batches++
	r.stats.Written += int64(len(b.batch))
	b.written, b.done = b.written+len(b.batch), time.Now()
	b.ends = append(b.ends, batchEnd{b.written, Mark(r.stats.Batches)})
	b.batch, b.begun = b.next(), false
	return nil
}
