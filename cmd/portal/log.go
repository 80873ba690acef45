package main

import (
	"context"
	"io"
	"log/slog"
)

// newLogger returns a logger that writes lines of JSON of at least this level to a queue, and a
// function that flushes it. Lines wait up to 20 ms there, because one write per request would cost
// a busy instance 5 % of its CPU time. They are lost if the process is killed in that time.
// Warnings and errors do not wait. The handler is an [io.Writer] for lines of level info, as
// middleware.AccessLog wants it.
func newLogger(lines *logQueue, level slog.Level) (logger *slog.Logger, flush func()) {
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

// logHandler writes warnings and errors without delay, and sums up those that repeat.
type logHandler struct {
	slog.Handler
	lines   *logQueue
	repeats *repeats // nil: all are written, because the handler has attributes of its own
}

// Handle queues a record.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn && h.repeats != nil && !h.repeats.admits(r, h.write) {
		return nil
	}
	return h.write(ctx, r)
}

func (h logHandler) write(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		h.lines.hurry()
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
