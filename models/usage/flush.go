package usage

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

const (
	// pieceTimeout is the time limit of a piece. It doubles with each failure up to
	// maxPieceTimeout, because a piece must not become smaller while its outcome is unknown.
	pieceTimeout    = 2 * time.Second
	maxPieceTimeout = 32 * time.Second
	// maxPause is the longest pause after a piece.
	maxPause = 50 * time.Millisecond
)

// Run flushes at intervals until ctx ends, and calls failed with each error. It lets a running
// piece finish.
func (r *Recorder) Run(ctx context.Context, interval time.Duration, failed func(error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := r.flush(ctx, r.yield)
		if err != nil && ctx.Err() == nil {
			failed(err)
		}
	}
}

// Close writes all counts and closes the writer.
func (r *Recorder) Close(ctx context.Context) error {
	return errors.Join(r.flush(ctx, false), r.writer.Close())
}

// flush writes all counts that were recorded before it began. An error loses none of them.
func (r *Recorder) flush(ctx context.Context, yield bool) error {
	select {
	case <-r.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { r.turn <- struct{}{} }()
	r.mu.Lock()
	waiting := len(r.open)
	r.mu.Unlock()
	if err := r.writePieces(ctx, yield); err != nil {
		return err
	}
	for range waiting {
		r.take()
		if err := r.writePieces(ctx, yield); err != nil {
			return err
		}
	}
	return nil
}

// take ends the counting in the oldest open generation, and prepares the generation for writing.
func (r *Recorder) take() {
	r.mu.Lock()
	g := r.open[0]
	r.open = r.open[1:]
	r.pending -= len(g.counts)
	r.writing = g
	r.mu.Unlock()

	// Counting has ended, so sorting needs no lock.
	entries := g.sorted()
	r.mu.Lock()
	defer r.mu.Unlock()
	g.entries, g.counts, g.first = entries, nil, r.next
	r.next += int64(g.pieces())
}

// writePieces writes the rest of the generation that take has begun, if there is one. Only flush
// changes it, so flush reads it without the lock.
func (r *Recorder) writePieces(ctx context.Context, yield bool) error {
	g := r.writing
	if g == nil {
		return nil
	}
	for g.written < g.pieces() {
		if err := ctx.Err(); err != nil {
			return err
		}
		started := time.Now()
		number, entries := g.piece(g.written)
		err := r.write(ctx, Piece{Recorder: r.id, Number: number, Hour: g.hour, Entries: entries}, g.failures)
		locked, notWritten := errors.AsType[*LockedError](err)
		if notWritten && !g.uncertain && r.postpone(g, locked.Keys) {
			continue
		}
		g.uncertain = err != nil && (g.uncertain || !notWritten)
		if err != nil {
			g.failures++
			return err
		}
		g.failures = 0
		r.wrote(g, len(entries))
		if yield {
			// The pause is as long as the write, so that others get half of the time.
			time.Sleep(min(time.Since(started), maxPause))
		}
	}
	r.retire(g)
	return nil
}

// write writes a piece after some failures. It lets the piece finish when ctx is canceled, but not
// when its deadline has passed.
func (r *Recorder) write(ctx context.Context, p Piece, failures int) error {
	deadline := time.Now().Add(min(pieceTimeout<<min(failures, 8), maxPieceTimeout))
	if limit, ok := ctx.Deadline(); ok && limit.Before(deadline) {
		deadline = limit
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	return r.writer.Write(ctx, p)
}

// postpone moves the counts of these keys to the open generation of their hour. It reports whether
// there were any.
func (r *Recorder) postpone(g *generation, keys []uuid.UUID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	moved := false
	for _, key := range keys {
		if i, found := g.position(key); found && g.entries[i].counts != (counts{}) {
			n := g.entries[i].counts
			g.entries[i].counts = counts{}
			r.add(g.hour, key, n)
			moved = true
		}
	}
	return moved
}

// wrote notes that a piece was written.
func (r *Recorder) wrote(g *generation, keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.written++
	r.stats.Pieces++
	r.stats.Written += int64(keys)
}

// retire keeps a written generation for reports, and drops those that were written long ago.
func (r *Recorder) retire(g *generation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.done = time.Now()
	r.writing = nil
	r.retired = append(r.retired, g)
	for len(r.retired) > 0 && time.Since(r.retired[0].done) > kept {
		r.retired = r.retired[1:]
	}
}
