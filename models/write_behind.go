package models

import (
	"context"
	"log/slog"
	"time"
)

const (
	// The portal promises that the last use of a key is on disk within one second.
	// usageInterval plus the duration of a flush must therefore stay below one second.
	usageInterval = 500 * time.Millisecond
	// lastSeenInterval and lastTokensInterval are the intervals of the other flushes.
	lastSeenInterval   = 500 * time.Millisecond
	lastTokensInterval = 5 * time.Second
)

// startBackground starts the regular flushes and the purge. They end with ctx, each after its
// running statement.
func (s *Store) startBackground(ctx context.Context) {
	report := func(err error) {
		// Nothing is lost: the next interval tries again.
		s.db.logger.ErrorContext(ctx, "background write failed", slog.Any("error", err))
	}
	s.stopped.Go(func() {
		s.usage.Run(ctx, usageInterval, func(err error) { report(failed("write usage", err)) })
	})
	s.stopped.Go(func() { repeat(ctx, lastSeenInterval, s.Sessions.flush, report) })
	s.stopped.Go(func() { repeat(ctx, lastTokensInterval, s.Agents.flush, report) })
	s.stopped.Go(func() { s.purgeRegularly(ctx, purgeDelay) })
	if s.Calls.Enabled() {
		s.stopped.Go(func() { s.Calls.endRegularly(ctx) })
	}
}

// repeat calls flush at intervals until ctx ends, and report with each error.
func repeat(ctx context.Context, interval time.Duration, flush func(context.Context) error, report func(error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), Timeout)
		err := flush(limited)
		cancel()
		if err != nil {
			report(err)
		}
	}
}
