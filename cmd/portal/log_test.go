package main

import (
	"errors"
	"fmt"
	"io"
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
	takes  int   // bytes of a write that fails
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		n := min(len(p), w.takes)
		w.writes, w.takes = append(w.writes, string(p[:n])), w.takes-n
		return n, w.err
	}
	w.writes = append(w.writes, string(p))
	return len(p), nil
}

// fail lets writes fail with err after this number of bytes.
func (w *written) fail(err error, takes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err, w.takes = err, takes
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
		logger, _ := newLogger(newLogQueue(&out), slog.LevelInfo)
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

func TestWarningsAndErrorsDoNotWait(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelWarn, slog.LevelError} {
		synctest.Test(t, func(t *testing.T) {
			var out written
			logger, flush := newLogger(newLogQueue(&out), slog.LevelInfo)
			logger.Info("before")
			logger.WithGroup("of").Log(t.Context(), level, "now")
			synctest.Wait()
			if lines := strings.Join(out.take(), ""); !strings.Contains(lines, "before") || !strings.Contains(lines, "now") {
				t.Errorf("%s: %q", level, lines)
			}
			logger.Info("the last")
			flush()
			if lines := strings.Join(out.take(), ""); !strings.Contains(lines, "the last") {
				t.Errorf("at the end: %q", lines)
			}
		})
	}
}

func TestLinesBelowTheLevelAreNotWritten(t *testing.T) {
	var out written
	logger, flush := newLogger(newLogQueue(&out), slog.LevelWarn)
	logger.Info("hidden")
	logger.Warn("shown")
	flush()
	if lines := strings.Join(out.take(), ""); strings.Contains(lines, "hidden") || !strings.Contains(lines, "shown") {
		t.Errorf("%q", lines)
	}
}

func TestOnlyALoggerWithoutAttributesTakesLines(t *testing.T) {
	var out written
	logger, flush := newLogger(newLogQueue(&out), slog.LevelInfo)
	logger.Info("before")
	lines, ok := logger.Handler().(io.Writer)
	if !ok {
		t.Fatal("the handler is no writer")
	}
	if _, err := io.WriteString(lines, "a line\n"); err != nil {
		t.Error(err)
	}
	flush()
	if lines := strings.Join(out.take(), ""); !strings.HasSuffix(lines, `"msg":"before"}`+"\na line\n") {
		t.Errorf("%q", lines)
	}
	for _, logger := range []*slog.Logger{logger.With(slog.String("by", "one")), logger.WithGroup("of")} {
		if _, ok := logger.Handler().(io.Writer); ok {
			t.Error("a handler with attributes or a group is a writer")
		}
	}
}

func TestLinesAreWrittenWhole(t *testing.T) {
	var out written
	logger, flush := newLogger(newLogQueue(&out), slog.LevelInfo)
	const n = 3000
	text := strings.Repeat("x", 100)
	for range n {
		logger.Info("a line", slog.String("text", text))
	}
	logger.Info("a long line", slog.String("text", strings.Repeat("y", 2*logBatch)))
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

// A full disk takes a part of a line.
func TestTheLogRecoversFromFailedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out written
		lines := newLogQueue(&out)
		logger, _ := newLogger(lines, slog.LevelInfo)
		out.fail(errors.New("no space left"), 5)
		for range 3 {
			logger.Error("lost")
			synctest.Wait()
		}
		if dropped := lines.countDropped(); dropped != 3 {
			t.Errorf("%.0f lines are dropped", dropped)
		}
		out.fail(nil, 0)
		for number := range 2 {
			logger.Error("kept", slog.Int("number", number))
			synctest.Wait()
		}
		got := strings.Split(strings.Join(out.take(), ""), "\n")
		if len(got) != 5 || !strings.Contains(got[1], `"number":0}`) || !strings.Contains(got[2], `"lines":3}`) || !strings.Contains(got[3], `"number":1}`) {
			t.Errorf("%q", got)
		}
	})
}

// stalled is a file whose reader reads when the test says so.
type stalled struct {
	written
	read chan struct{}
}

func (s *stalled) Write(p []byte) (int, error) {
	<-s.read
	return s.written.Write(p)
}

func TestALogThatIsNotReadDropsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stalled{read: make(chan struct{})}
		lines := newLogQueue(out)
		logger, flush := newLogger(lines, slog.LevelInfo)
		const n = 2 * maxLog / 1000
		for i := range n {
			logger.Warn("a line", slog.Int("number", i), slog.String("text", strings.Repeat("x", 1000)))
		}
		flush() // waits for a limited time
		dropped := int(lines.countDropped())
		if dropped < n/3 {
			t.Errorf("%d lines are dropped", dropped)
		}
		close(out.read)
		synctest.Wait()
		got := strings.Join(out.take(), "")
		if notice := fmt.Sprintf(`"lines":%d}`+"\n", dropped); len(got) > maxLog+1000 || strings.Count(got, "\n") != n-dropped+1 || !strings.HasSuffix(got, notice) {
			t.Errorf("%d bytes and %d lines are written, the end is %q", len(got), strings.Count(got, "\n"), got[len(got)-200:])
		}
		logger.Warn("it flows")
		flush()
		if got := strings.Join(out.take(), ""); strings.Count(got, "\n") != 1 || int(lines.countDropped()) != dropped {
			t.Errorf("afterwards: %q", got)
		}
	})
}

func TestRepeatedFailuresAreSummed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out written
		logger, flush := newLogger(newLogQueue(&out), slog.LevelInfo)
		full := func(file int) {
			logger.Error("request", slog.Int("status", 503), slog.String("request_id", fmt.Sprint(file)), slog.Any("cause", fmt.Errorf("cannot extend file %d: no space left", file)))
		}
		lines := func() string {
			synctest.Wait()
			return strings.Join(out.take(), "")
		}
		for file := range 1000 {
			full(file)
			// Of each, all lines are written.
			if file < 2 {
				logger.Error("request", slog.Int("status", 500), slog.String("cause", "a mistake"))
				logger.Warn("without a cause")
				logger.With(slog.Int("mail", 7)).Warn("a mail was not sent", slog.String("cause", "away"))
				logger.Error("background write failed", slog.Any("error", fmt.Errorf("another failure %c", 'a'+file)))
			}
		}
		if got := lines(); strings.Count(got, "no space left") != 1 || strings.Count(got, "\n") != 9 || strings.Contains(got, "repeated") {
			t.Errorf("at first: %s", got)
		}
		time.Sleep(repeatInterval)
		if got := lines(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"request_id":"999","cause":"cannot extend file 999: no space left","repeated":999}`) {
			t.Errorf("after an interval: %s", got)
		}
		full(1000)
		full(1001)
		time.Sleep(repeatInterval)
		if got := lines(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"repeated":2}`) {
			t.Errorf("while it goes on: %s", got)
		}
		time.Sleep(repeatInterval)
		if got := lines(); got != "" {
			t.Errorf("after its end: %s", got)
		}
		full(1002)
		full(1003)
		if got := lines(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "file 1002") {
			t.Errorf("when it begins again: %s", got)
		}
		flush()
		if got := lines(); !strings.Contains(got, `"repeated":1}`) {
			t.Errorf("at a stop: %s", got)
		}
		for i := range maxFailures + 50 {
			for range 2 {
				logger.Warn("one of many", slog.String("cause", "a failure "+strings.Repeat("x", i)))
			}
		}
		if got := lines(); strings.Count(got, "\n") != maxFailures+2*50 {
			t.Errorf("%d lines of many failures", strings.Count(got, "\n"))
		}
		flush()
	})
}
