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
	logDelay  = 20 * time.Millisecond // how long a line may wait in the buffer
	logBuffer = 64 << 10              // size of the buffer in bytes
)

// newLogger returns a logger that writes lines of JSON of at least this level to w, and a function
// that flushes its buffer. Lines wait up to 20 ms in the buffer, because one write per request
// would cost a busy instance 5 % of its CPU time. They are lost if the process is killed in that
// time. Warnings and errors flush the buffer at once. The handler is an [io.Writer] for lines of
// level info, as middleware.AccessLog wants it.
func newLogger(w io.Writer, level slog.Level) (logger *slog.Logger, flush func()) {
	lines := &logWriter{out: w, buffer: bufio.NewWriterSize(w, logBuffer)}
	lines.timer = time.AfterFunc(logDelay, lines.flush)
	handler := logHandler{Handler: slog.NewJSONHandler(lines, &slog.HandlerOptions{Level: level}), lines: lines, repeats: &repeats{}}
	flush = func() {
		handler.repeats.flush()
		lines.flush()
	}
	// A handler with attributes or groups is no writer, because lines would lack them.
	return slog.New(struct {
		slog.Handler
		io.Writer
	}{handler, lines}), flush
}

// logHandler flushes the buffer after warnings and errors, and sums those that repeat.
type logHandler struct {
	slog.Handler
	lines   *logWriter
	repeats *repeats // nil: all are written, because the handler has attributes of its own
}

// Handle writes a record to the buffer.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn && h.repeats != nil && !h.repeats.admits(r, h.write) {
		return nil
	}
	return h.write(ctx, r)
}

func (h logHandler) write(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		h.lines.flush()
	}
	return err
}

// WithAttrs returns a handler with the attributes.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{Handler: h.Handler.WithAttrs(attrs), lines: h.lines}
}

// WithGroup returns a handler with the group.
func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{Handler: h.Handler.WithGroup(name), lines: h.lines}
}

// logWriter buffers lines. Write blocks while the buffer is being written.
type logWriter struct {
	out io.Writer

	mu     sync.Mutex
	buffer *bufio.Writer
	timer  *time.Timer // runs while the buffer has lines
}

// Write adds one line to the buffer. If the line does not fit, Write writes the buffer first.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.buffer.Available() < len(line) {
		w.writeAll() // only whole lines, because other processes may write to the same file
	}
	if w.buffer.Buffered() == 0 {
		w.timer.Reset(logDelay)
	}
	return w.buffer.Write(line)
}

func (w *logWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeAll()
}

func (w *logWriter) writeAll() {
	if err := w.buffer.Flush(); err != nil {
		// There is nowhere to report the error. Without Reset, the bufio.Writer would
		// repeat it for all later lines.
		w.buffer.Reset(w.out)
	}
}
