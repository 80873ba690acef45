package erasure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"portal/models/calls"
	"portal/models/keys"
	"portal/models/outbox"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
	"portal/models/webhooks"
)

const (
	// PurgeInterval is the time between two purges.
	PurgeInterval = time.Hour

	hourlyUsageKept  = 48 * time.Hour
	dailyUsageKept   = 400 * value.Day
	limitNoticesKept = 62 * value.Day // longer than a month
	// activitiesKept is how long activities are kept. A trigger refuses to delete newer ones.
	activitiesKept = 400 * value.Day
)

// Purge deletes old activities, calls, usage rows, sources and exchanges of keys, used tokens that
// have expired, expired and idle sessions, pending sign-ins, links, invitations, set-ups of
// authenticator apps, removed webhooks, old mails, old sign-in failures, and users who were removed
// long ago.
func (e *Erasures) Purge(ctx context.Context) error {
	now := e.db.Now()
	// Another instance may not have written a later use of the session yet.
	idle := now.Add(-e.sessionIdle - PurgeInterval)
	forgotten := now.Add(-activitiesKept)
	var errs []error
	for _, old := range []expiredRows{
		{"api_key_hourly_usage", "api_key_id, hour", "hour < ?", []any{now.Add(-hourlyUsageKept)}},
		{"api_key_daily_usage", "api_key_id, day", "day < ?", []any{now.Add(-dailyUsageKept)}},
		{"api_key_days", "account_id, day, api_key_id", "day < ?", []any{now.Add(-keys.KeyDaysKept)}},
		{"api_key_sources", "api_key_id, day, address, client", "day < ?", []any{now.Add(-keys.SourcesKept)}},
		{"api_key_refusals", "api_key_id, id", "at < ?", []any{now.Add(-keys.KeyRefusalsKept)}},
		{"api_key_agents", "api_key_id, agent_id", "used_at < ?", []any{now.Add(-keys.SourcesKept)}},
		{"used_tokens", "token_hash", "expires_at < ?", []any{now.Add(-keys.UsedTokenSlack)}},
		{"exchanges", "id", "id < ? AND at < ?", []any{value.LowestID(now.Add(-keys.ExchangesKept)), now.Add(-keys.ExchangesKept)}},
		{"sessions", "id", "expires_at < ? OR last_seen_at < ?", []any{now, idle}},
		{"sign_in_failures", "id", "at < ?", []any{now.Add(-people.SignInWindow)}},
		{"sign_in_links", "token_hash", "expires_at < ?", []any{now}},
		{"invitations", "id", "expires_at < ?", []any{now}},
		{"recent_mails", "id", "at < ?", []any{now.Add(-record.RecentMailWindow)}},
		{"pending_sign_ins", "token_hash", "expires_at < ?", []any{now}},
		{"used_challenges", "challenge_hash", "expires_at < ?", []any{now}},
		{"authenticators", "user_id", "enabled_at IS NULL AND created_at < ?", []any{now.Add(-people.TOTPSetup)}},
		{"calls", "id", "started_at < ? AND ended_at IS NOT NULL", []any{now.Add(-calls.CallsKept)}},
		{"call_totals", "subject_id, day", "day < ?", []any{now.Add(-dailyUsageKept)}},
		{"limit_notices", "subject_id, month, percent", "month < ?", []any{now.Add(-limitNoticesKept)}},
		{"password_reset_links", "token_hash", "expires_at < ?", []any{now}},
		{"email_changes", "user_id", "expires_at < ?", []any{now}},
		{"webhook_deliveries", "endpoint_id, event_id, event", "created_at < ?", []any{now.Add(-webhooks.DeliveriesKept)}},
		{
			"webhook_deliveries", "endpoint_id, event_id, event",
			"endpoint_id IN (SELECT id FROM webhook_endpoints WHERE removed_at IS NOT NULL)", nil,
		},
		{
			"webhook_endpoints", "id",
			"removed_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM webhook_deliveries AS d WHERE d.endpoint_id = webhook_endpoints.id)", nil,
		},
		{"outbox", "id", "created_at < ?", []any{now.Add(-outbox.MailKept - PurgeInterval)}},
		{"activity_repeats", "activity_id", "period < ?", []any{forgotten.Add(-record.RepeatPeriod)}},
		// The range of ids uses the primary key: ids sort by time.
		{"activities", "id", "id < ? AND at < ?", []any{value.LowestID(forgotten), forgotten}},
		// All activities of these users are older. A key's page names the user who
		// generated it.
		{
			"users", "id", "removed_at < ? AND NOT EXISTS (SELECT 1 FROM api_keys AS k WHERE k.created_by = users.id)",
			[]any{forgotten},
		},
	} {
		if err := purgeTable(ctx, e.db, skipsLocked, old); err != nil {
			errs = append(errs, fmt.Errorf("purge %s: %w", old.table, err))
		}
	}
	return errors.Join(errs...)
}
