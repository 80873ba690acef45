package models

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// Day is 24 hours of UTC.
const Day = 24 * time.Hour

// DailyRequests returns, for each of the account's active keys that was used,
// its accepted requests on each of the last days (UTC), oldest first and today
// last, with those that this instance has not written yet. It is one read
// however many keys there are; the error may be [ErrUnavailable].
func (s *Store) DailyRequests(ctx context.Context, accountID uuid.UUID, days int) (map[uuid.UUID][]int64, error) {
	s.usage.moving.RLock()
	defer s.usage.moving.RUnlock()
	first := s.clock().Truncate(Day).Add(-time.Duration(days-1) * Day)
	var rows []struct {
		ID       uuid.UUID
		Day      *time.Time // nil where nothing is stored
		Requests int64
	}
	err := s.db.NewSelect().Model((*APIKey)(nil)).
		ColumnExpr("api_key.id, daily.day, COALESCE(daily.requests, 0) AS requests").
		Join("LEFT JOIN api_key_daily_usage AS daily ON daily.api_key_id = api_key.id AND daily.day >= ?", first).
		Where("api_key.account_id = ? AND api_key.revoked_at IS NULL", accountID).Scan(ctx, &rows)
	if err != nil {
		return nil, failed("read daily usage", err)
	}
	report := map[uuid.UUID][]int64{}
	add := func(keyID uuid.UUID, at time.Time, requests int64) {
		day := int(at.Sub(first) / Day)
		if requests == 0 || day < 0 || day >= days {
			return
		}
		if report[keyID] == nil {
			report[keyID] = make([]int64, days)
		}
		report[keyID][day] += requests
	}
	seen := map[uuid.UUID]bool{}
	for _, row := range rows {
		if row.Day != nil {
			add(row.ID, *row.Day, row.Requests)
		}
		if !seen[row.ID] {
			seen[row.ID] = true
			s.usage.each(row.ID, func(hour time.Time, n requestCounts) { add(row.ID, hour, n.requests) })
		}
	}
	return report, nil
}

// RecentUsage is how much a key was used of late. Hours are counted as a whole,
// so up to one more hour may be in each.
type RecentUsage struct {
	Requests int64 // accepted in the last 24 hours
	Refusals int64 // refused in the last hour, because it is revoked
}

// RecentUsage returns how much each of these keys of the account, active or
// revoked, was used of late, with what this instance has not written yet. Keys
// that were not used are left out. The error may be [ErrUnavailable].
func (s *Store) RecentUsage(ctx context.Context, accountID uuid.UUID, keyIDs ...uuid.UUID) (map[uuid.UUID]RecentUsage, error) {
	report := map[uuid.UUID]RecentUsage{}
	if len(keyIDs) == 0 {
		return report, nil
	}
	s.usage.moving.RLock()
	defer s.usage.moving.RUnlock()
	now := s.clock()
	day, lastHour := now.Add(-Day).Truncate(time.Hour), now.Add(-time.Hour).Truncate(time.Hour)
	var rows []struct {
		ID       uuid.UUID
		Hour     *time.Time // nil where nothing is stored
		Requests int64
		Refusals int64
	}
	err := s.db.NewSelect().Model((*APIKey)(nil)).
		ColumnExpr("api_key.id, hourly.hour, COALESCE(hourly.requests, 0) AS requests, COALESCE(hourly.refusals, 0) AS refusals").
		Join("LEFT JOIN api_key_hourly_usage AS hourly ON hourly.api_key_id = api_key.id AND hourly.hour >= ?", day).
		Where("api_key.account_id = ? AND api_key.id IN (?)", accountID, bun.List(keyIDs)).Scan(ctx, &rows)
	if err != nil {
		return nil, failed("read hourly usage", err)
	}
	add := func(keyID uuid.UUID, hour time.Time, n requestCounts) {
		usage := report[keyID]
		if !hour.Before(day) {
			usage.Requests += n.requests
		}
		if !hour.Before(lastHour) {
			usage.Refusals += n.refusals
		}
		if usage != (RecentUsage{}) {
			report[keyID] = usage
		}
	}
	seen := map[uuid.UUID]bool{}
	for _, row := range rows {
		if row.Hour != nil {
			add(row.ID, *row.Hour, requestCounts{row.Requests, row.Refusals})
		}
		if !seen[row.ID] {
			seen[row.ID] = true
			s.usage.each(row.ID, func(hour time.Time, n requestCounts) { add(row.ID, hour, n) })
		}
	}
	return report, nil
}
