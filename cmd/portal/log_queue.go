package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	logDelay = 20 * time.Millisecond // how long a line may wait for others
	logBatch = 64 << 10              // the bytes that wait for no others
	// maxLog bounds the bytes of lines that are not written yet. They are about 10,000 lines.
	maxLog = 4 << 20
	// flushLogTimeout is how long the end of the process waits for the last lines.
	flushLogTimeout = 400 * time.Millisecond
)

// logQueue writes lines to a file in the background, so that nobody waits for a reader who has
// stopped reading. If too many lines wait, or the file takes none, it drops and counts them. Once
// it can write again, it adds a line with their number. It is safe for concurrent use.
type logQueue struct {
	out io.Writer

	mu       sync.Mutex
	waiting  []byte        // whole lines
	spare    []byte        // the buffer of the batch before
	batch    int           // bytes that are being written
	idle     chan struct{} // closed once nothing waits; nil while nothing is being written
	urgent   bool          // the lines that wait do not wait for others
	torn     bool          // the last line in the file has no end
	timer    *time.Timer   // runs while lines wait for others
	dropped  int           // lines
	reported int           // how many of them a line has reported
}

func newLogQueue(out io.Writer) *logQueue {
	q := &logQueue{out: out}
	q.timer = time.AfterFunc(logDelay, q.hurry)
	return q
}

// Write queues one line, or drops it. It never blocks and returns no error.
func (q *logQueue) Write(line []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.batch+len(q.waiting)+len(line) > maxLog {
		q.dropped++
		return len(line), nil
	}
	if len(q.waiting) == 0 && q.idle == nil {
		q.timer.Reset(logDelay)
	}
	q.waiting = append(q.waiting, line...)
	if len(q.waiting) >= logBatch {
		q.begin()
	}
	return len(line), nil
}

// hurry begins to write the lines that wait.
func (q *logQueue) hurry() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.urgent = len(q.waiting) > 0
	q.begin()
}

// flush waits until all lines are written, for a limited time.
func (q *logQueue) flush() {
	q.hurry()
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-time.After(flushLogTimeout):
	}
}

// countDropped returns the number of lines that were dropped.
func (q *logQueue) countDropped() float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return float64(q.dropped)
}

// begin begins to write unless lines are being written or none wait.
func (q *logQueue) begin() {
	if q.idle == nil && len(q.waiting) > 0 {
		q.idle = make(chan struct{})
		go q.writeWaiting()
	}
}

// writeWaiting writes a batch, and others while they are urgent or large.
func (q *logQueue) writeWaiting() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for again := true; again; {
		lines, torn, unreported := q.waiting, q.torn, q.dropped-q.reported
		q.waiting, q.spare, q.batch, q.urgent = q.spare[:0], nil, len(lines), false
		q.mu.Unlock()
		n, err := q.writeBatch(lines, torn)
		if err == nil && unreported > 0 {
			err = writeDropped(q.out, unreported)
		}
		q.mu.Lock()
		q.batch = 0
		q.dropped += bytes.Count(lines[n:], []byte("\n"))
		if err == nil {
			q.reported += unreported
		}
		if n > 0 {
			q.torn = lines[n-1] != '\n' && err != nil
		}
		if cap(lines) <= 2*logBatch {
			q.spare = lines
		}
		// The line about those that were dropped in the meantime may be the last one.
		again = q.urgent || len(q.waiting) >= logBatch || err == nil && q.dropped > q.reported
	}
	close(q.idle)
	q.idle = nil
	if len(q.waiting) > 0 {
		q.timer.Reset(logDelay)
	}
}

// writeBatch writes lines, after the end of a line that is torn, and returns the number of their
// bytes that are written.
func (q *logQueue) writeBatch(lines []byte, torn bool) (n int, err error) {
	if torn {
		if _, err := q.out.Write([]byte("\n")); err != nil {
			return 0, err
		}
	}
	if len(lines) == 0 {
		return 0, nil
	}
	return q.out.Write(lines)
}

// writeDropped writes a line of the log about lines that were dropped.
func writeDropped(out io.Writer, lines int) error {
	var line bytes.Buffer
	record := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines dropped: they were not read in time, or could not be written", 0)
	record.AddAttrs(slog.Int("lines", lines))
	if err := slog.NewJSONHandler(&line, nil).Handle(context.Background(), record); err != nil {
		return err
	}
	_, err := out.Write(line.Bytes())
	return err
}
