package main

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// written is a writer that records each write.
type written struct {
	mu     sync.Mutex
	writes []string
	err    error // returned by each write; may be nil
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	w.writes = append(w.writes, string(p))
	return len(p), nil
}

func (w *written) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// take returns the writes since its last call.
func (w *written) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.writes
	w.writes = nil
	return taken
}

func TestLinesAreBufferedForTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out written
		logger, _ := newLogger(&out, slog.LevelInfo)
		for range 2 { // the delay starts again after a write
			logger.Info("one")
			logger.With(slog.String("by", "two")).Info("two")
			if early := out.take(); len(early) > 0 {
				t.Errorf("before the delay: %q", early)
			}
			time.Sleep(logDelay)
			synctest.Wait()
			late := out.take()
			if len(late) != 1 || strings.Count(late[0], "\n") != 2 || !strings.Contains(late[0], `"by":"two"`) {
				t.Errorf("after the delay: %q", late)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if idle := out.take(); len(idle) > 0 {
			t.Errorf("without lines: %q", idle)
		}
	})
}

func TestWarningsAndErrorsFlushTheBuffer(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelWarn, slog.LevelError} {
		var out written
		logger, flush := newLogger(&out, slog.LevelInfo)
		logger.Info("before")
		logger.WithGroup("of").Log(t.Context(), level, "now")
		if lines := strings.Join(out.take(), ""); !strings.Contains(lines, "before") || !strings.Contains(lines, "now") {
			t.Errorf("%s: %q", level, lines)
		}
		logger.Info("the last")
		flush()
		if lines := strings.Join(out.take(), ""); !strings.Contains(lines, "the last") {
			t.Errorf("at the end: %q", lines)
		}
	}
}

func TestLinesBelowTheLevelAreNotWritten(t *testing.T) {
	var out written
	logger, flush := newLogger(&out, slog.LevelWarn)
	logger.Info("hidden")
	logger.Warn("shown")
	flush()
	if lines := strings.Join(out.take(), ""); strings.Contains(lines, "hidden") || !strings.Contains(lines, "shown") {
		t.Errorf("%q", lines)
	}
}

func TestLinesAreWrittenWhole(t *testing.T) {
	var out written
	logger, flush := newLogger(&out, slog.LevelInfo)
	const n = 3000
	text := strings.Repeat("x", 100)
	for range n {
		logger.Info("a line", slog.String("text", text))
	}
	logger.Info("a long line", slog.String("text", strings.Repeat("y", 2*logBuffer)))
	flush()
	lines := 0
	for _, write := range out.take() {
		if !strings.HasPrefix(write, "{") || !strings.HasSuffix(write, "}\n") {
			t.Errorf("%.20q...", write)
		}
		lines += strings.Count(write, "\n")
	}
	if lines != n+1 {
		t.Errorf("%d lines of %d", lines, n+1)
	}
}

func TestTheLogRecoversFromAFailedWrite(t *testing.T) {
	var out written
	logger, _ := newLogger(&out, slog.LevelInfo)
	out.fail(errors.New("no space left"))
	logger.Error("lost")
	out.fail(nil)
	logger.Error("kept")
	if lines := strings.Join(out.take(), ""); strings.Contains(lines, "lost") || !strings.Contains(lines, "kept") {
		t.Errorf("%q", lines)
	}
}
