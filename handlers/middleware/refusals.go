package middleware

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// refusalInterval is how long refused requests are counted before the count is logged.
const refusalInterval = time.Second

// refusalLog writes one warning a second about requests that were refused because there were too
// many. A line for each would cost more than the refusal.
type refusalLog struct {
	logger *slog.Logger

	mu    sync.Mutex
	count int
	first []any // attributes of the first request
}

// add counts a request. It calls describe for the first request of a second.
func (l *refusalLog) add(describe func() []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count++; l.count == 1 {
		l.first = describe()
		time.AfterFunc(refusalInterval, l.write)
	}
}

func (l *refusalLog) write() {
	l.mu.Lock()
	count, first := l.count, l.first
	l.count, l.first = 0, nil
	l.mu.Unlock()
	l.logger.LogAttrs(context.Background(), slog.LevelWarn, "requests refused", slog.Int("count", count), slog.Group("first", first...))
}
