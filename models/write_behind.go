package models

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

const (
	// flushInterval and the time of a write must stay below one second, within which usage is
	// promised to reach the disk.
	flushInterval = 500 * time.Millisecond
	flushTimeout  = 2 * time.Second
	purgeInterval = time.Hour
)

// writeBehind flushes the memory and deletes expired rows at intervals until background ends. It
// lets a running write finish: to repeat one whose outcome is unknown could count a use twice.
func (s *Store) writeBehind(background context.Context) {
	flush, purge := time.NewTicker(flushInterval), time.NewTicker(purgeInterval)
	defer flush.Stop()
	defer purge.Stop()
	for {
		var err error
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		select {
		case <-background.Done():
			cancel()
			return
		case <-flush.C:
			err = s.flush(ctx)
		case <-purge.C:
			err = s.purge(ctx)
		}
		cancel()
		if err != nil {
			// Nothing is lost: the next interval tries again.
			s.logger.ErrorContext(background, "background write failed", slog.Any("error", err))
		}
	}
}

func (s *Store) flush(ctx context.Context) error {
	return errors.Join(
		s.usage.flush(func(usages map[uuid.UUID]*keyUsage) error {
			return failed("write usage", s.writeUsage(ctx, usages))
		}),
		s.flushLastSeen(ctx),
	)
}

// purge deletes expired sessions, old usage rows and old sign-in failures. If two instances
// deadlock, one of them retries an hour later.
func (s *Store) purge(ctx context.Context) error {
	now := s.clock()
	var errs []error
	for _, old := range []struct {
		table, column string
		before        time.Time
	}{
		{"api_key_hourly_usage", "hour", now.Add(-hourlyUsageKept)},
		{"api_key_daily_usage", "day", now.Add(-dailyUsageKept)},
		{"sessions", "expires_at", now},
		{"sign_in_failures", "at", now.Add(-signInWindow)},
	} {
		_, err := s.db.NewDelete().TableExpr(old.table).Where("? < ?", bun.Ident(old.column), old.before).Exec(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("purge %s: %w", old.table, err))
		}
	}
	return errors.Join(errs...)
}
