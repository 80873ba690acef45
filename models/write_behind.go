package models

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

const (
	// flushInterval and the time of a write must stay below one second, within which usage is
	// promised to reach the disk.
	flushInterval = 500 * time.Millisecond
	flushTimeout  = 2 * time.Second
)

// writeBehind flushes the memory at intervals until background ends. It lets a running write
// finish: to repeat one whose outcome is unknown could count a use twice.
func (s *Store) writeBehind(background context.Context) {
	ticker := time.NewTicker(flushInterval)
	defer ticker.Stop()
	for {
		select {
		case <-background.Done():
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		err := s.flush(ctx)
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
		s.flushLastTokens(ctx),
	)
}
