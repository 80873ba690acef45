package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	logDelay = 20 * time.Millisecond // that a line may wait for others
	logRoom  = 64 << 10              // bytes of lines that wait
)

// newLogger returns a logger that writes lines of JSON to w, and what writes those that still wait. A write for each
// request would be a twentieth of what a busy instance does: lines of ordinary things wait for up to 20 ms, and are lost
// if the process is killed in that time. Warnings and errors are written at once, with all before them.
func newLogger(w io.Writer) (logger *slog.Logger, flush func()) {
	lines := &logWriter{to: w, waiting: bufio.NewWriterSize(w, logRoom)}
	lines.late = time.AfterFunc(logDelay, lines.flush)
	return slog.New(logHandler{slog.NewJSONHandler(lines, nil), lines}), lines.flush
}

// logHandler lets no line of importance wait.
type logHandler struct {
	slog.Handler
	lines *logWriter
}

// Handle writes a record.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		h.lines.flush()
	}
	return err
}

// WithAttrs and WithGroup are as those of the handler that this one is around.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs), h.lines}
}

// WithGroup opens a group.
func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name), h.lines}
}

// logWriter gathers lines. Where they come faster than they can be written, who writes one waits.
type logWriter struct {
	to io.Writer

	mu      sync.Mutex
	waiting *bufio.Writer
	late    *time.Timer // runs while lines wait
}

// Write takes one line.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting.Available() < len(line) {
		w.writeAll() // whole lines: other processes may write to the same file
	}
	if w.waiting.Buffered() == 0 {
		w.late.Reset(logDelay)
	}
	return w.waiting.Write(line)
}

func (w *logWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeAll()
}

func (w *logWriter) writeAll() {
	if err := w.waiting.Flush(); err != nil {
		// There is nowhere to say so. Those after it may find room again, which a writer that remembers its error
		// would keep from them.
		w.waiting.Reset(w.to)
	}
}
