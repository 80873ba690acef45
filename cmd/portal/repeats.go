package main

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	// repeatInterval is how long the repeats of a failure are counted before one line has their
	// number.
	repeatInterval = 10 * time.Second
	// maxFailures is the number of different failures that are counted at a time. The lines of
	// further ones are all written.
	maxFailures = 100
)

// repeats lets one line stand for many, because a full disk, a missing standby or a flood makes the
// same failure again and again, thousands of times a second. The zero value is ready.
type repeats struct {
	mu       sync.Mutex
	failures map[string]*failure // by what they have in common
}

// failure is a failure that was logged in the last interval.
type failure struct {
	timer  *time.Timer
	count  int         // lines that were not written since then
	last   slog.Record // the last of them
	handle func(context.Context, slog.Record) error
}

// admits reports whether a record is to be written now. Otherwise it counts the record, and handle
// writes the last one with the count at the end of the interval.
func (r *repeats) admits(record slog.Record, handle func(context.Context, slog.Record) error) bool {
	key := failureOf(record)
	if key == "" {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.failures[key]; known != nil {
		known.count, known.last = known.count+1, record.Clone()
		return false
	}
	if len(r.failures) >= maxFailures {
		return true
	}
	if r.failures == nil {
		r.failures = map[string]*failure{}
	}
	r.failures[key] = &failure{handle: handle, timer: time.AfterFunc(repeatInterval, func() { r.end(key) })}
	return true
}

// end ends the interval of a failure, and begins another if the failure was repeated.
func (r *repeats) end(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.failures[key]
	if known == nil {
		return
	}
	if known.count == 0 {
		delete(r.failures, key)
		return
	}
	known.write()
	known.timer.Reset(repeatInterval)
}

// flush writes the counts of all failures.
func (r *repeats) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, known := range r.failures {
		known.timer.Stop()
		known.write()
		delete(r.failures, key)
	}
}

func (f *failure) write() {
	if f.count == 0 {
		return
	}
	f.last.AddAttrs(slog.Int("repeated", f.count))
	f.count = 0
	_ = f.handle(context.Background(), f.last)
}

// failureOf returns what repeated lines have in common: the message and the cause without digits,
// such as those of a port or a file. It is empty for lines that are all written: those without a
// cause, and those of a request with another status than 503, because users report its id.
func failureOf(record slog.Record) string {
	key := ""
	record.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "cause", "error":
			key = record.Level.String() + " " + record.Message + " " + strings.Map(withoutDigits, a.Value.String())
		case "status":
			if a.Value.Int64() != http.StatusServiceUnavailable {
				key = ""
				return false
			}
		}
		return true
	})
	return key
}

func withoutDigits(r rune) rune {
	if unicode.IsDigit(r) {
		return -1
	}
	return r
}
