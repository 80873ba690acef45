package models

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

const (
	purgeInterval = time.Hour
	// purgeDelay is the time from the start to the first purge. Most commands end before.
	purgeDelay = 10 * time.Second
	// purgeBatch is the number of rows that one statement deletes. A small batch does not delay
	// other writers.
	purgeBatch = 1000
	// purgePause is the time between two batches, in which other writers can use a SQLite file.
	purgePause = 10 * time.Millisecond

	hourlyUsageKept = 48 * time.Hour
	dailyUsageKept  = 400 * Day
	// activitiesKept is how long activities are kept. A trigger refuses to delete newer ones.
	activitiesKept = 400 * Day
)

// expired is a kind of rows that the purge deletes.
type expired struct {
	table, key string // key is the columns of the primary key
	where      string
	args       []any
}

// purgeRegularly purges and checks the clock after a delay and then at intervals until background
// ends.
func (s *Store) purgeRegularly(background context.Context, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case <-background.Done():
			return
		case <-timer.C:
			timer.Reset(purgeInterval)
			err := errors.Join(s.purge(background), s.Credentials.resealTOTP(background), s.db.warnOfClock(background))
			if err != nil && background.Err() == nil {
				s.db.logger.ErrorContext(background, "cannot maintain the database", slog.Any("error", err))
			}
		}
	}
}

// purge deletes old activities, usage rows and sources of keys, expired and idle sessions, pending
// sign-ins, links, invitations, set-ups of authenticator apps, old mails, old sign-in failures, and
// users who were removed long ago.
func (s *Store) purge(ctx context.Context) error {
	now := s.db.Now()
	// Another instance may not have written a later use of the session yet.
	idle := now.Add(-s.Sessions.idle - purgeInterval)
	forgotten := now.Add(-activitiesKept)
	var errs []error
	for _, old := range []expired{
		{"api_key_hourly_usage", "api_key_id, hour", "hour < ?", []any{now.Add(-hourlyUsageKept)}},
		{"api_key_daily_usage", "api_key_id, day", "day < ?", []any{now.Add(-dailyUsageKept)}},
		{"api_key_sources", "api_key_id, day, address, client", "day < ?", []any{now.Add(-sourcesKept)}},
		{"api_key_agents", "api_key_id, agent_id", "used_at < ?", []any{now.Add(-sourcesKept)}},
		{"sessions", "id", "expires_at < ? OR last_seen_at < ?", []any{now, idle}},
		{"sign_in_failures", "id", "at < ?", []any{now.Add(-signInWindow)}},
		{"sign_in_links", "token_hash", "expires_at < ?", []any{now}},
		{"invitations", "id", "expires_at < ?", []any{now}},
		{"recent_mails", "id", "at < ?", []any{now.Add(-recentMailWindow)}},
		{"pending_sign_ins", "token_hash", "expires_at < ?", []any{now}},
		{"used_challenges", "challenge_hash", "expires_at < ?", []any{now}},
		{"authenticators", "user_id", "enabled_at IS NULL AND created_at < ?", []any{now.Add(-totpSetup)}},
		{"hang_ups", "activity_id", "expires_at < ?", []any{now.Add(-hangUpKept)}},
		{"password_reset_links", "token_hash", "expires_at < ?", []any{now}},
		{"email_changes", "user_id", "expires_at < ?", []any{now}},
		{"outbox", "id", "created_at < ?", []any{now.Add(-mailKept - purgeInterval)}},
		{"activity_repeats", "activity_id", "period < ?", []any{forgotten.Add(-repeatPeriod)}},
		// The range of ids uses the primary key: ids sort by time.
		{"activities", "id", "id < ? AND at < ?", []any{lowestID(forgotten), forgotten}},
		// All activities of these users are older. A key's page names the user who
		// generated it.
		{
			"users", "id", "removed_at < ? AND NOT EXISTS (SELECT 1 FROM api_keys AS k WHERE k.account_id = users.account_id AND k.created_by = users.id)",
			[]any{forgotten},
		},
	} {
		if err := s.purgeTable(ctx, old); err != nil {
			errs = append(errs, fmt.Errorf("purge %s: %w", old.table, err))
		}
	}
	return errors.Join(errs...)
}

// purgeTable deletes in batches until no expired rows are left.
func (s *Store) purgeTable(ctx context.Context, old expired) error {
	for {
		deleted, err := s.purgeBatch(ctx, old)
		if err != nil || deleted < purgeBatch {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(purgePause):
		}
	}
}

// purgeBatch deletes one batch and returns its size. On PostgreSQL it skips rows that another
// instance deletes at the same time; SQLite's transactions run one at a time.
func (s *Store) purgeBatch(ctx context.Context, old expired) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.timeout)
	defer cancel()
	batch := s.db.NewSelect().TableExpr(old.table).ColumnExpr(old.key).Where(old.where, old.args...).Limit(purgeBatch)
	batch = s.db.locked(batch, "UPDATE SKIP LOCKED")
	return affected(s.db.NewDelete().TableExpr(old.table).Where("(?) IN (?)", bun.Safe(old.key), batch).Exec(ctx))
}

// lowestID returns the lowest UUIDv7 of a time (RFC 9562 section 5.7).
func lowestID(at time.Time) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16)
	return id
}

const (
	// The portal promises that the last use of a key is on disk within one second.
	// usageInterval plus the duration of a flush must therefore stay below one second.
	usageInterval = 500 * time.Millisecond
	// lastSeenInterval and lastTokensInterval are the intervals of the other flushes.
	lastSeenInterval   = 500 * time.Millisecond
	lastTokensInterval = 5 * time.Second
)

// startBackground starts the regular flushes, the mails about expiring keys and the purge. They end
// with ctx, each after its running statement.
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
	if s.Outbox.Enabled() {
		// Many accounts need more than Timeout, and what is left when the portal stops can
		// wait.
		warn := func(context.Context) error { return s.Outbox.WarnOfExpiry(ctx) }
		s.stopped.Go(func() { repeat(ctx, warningInterval, warn, report) })
	}
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
