package models

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// Day is 24 hours of UTC.
const Day = 24 * time.Hour

// RecentUsage is the recent usage of one key. It counts whole hours, so each count can cover up to
// one hour more than its name says.
type RecentUsage struct {
	Requests int64 // accepted in the last 24 hours
	Refusals int64 // refused in the last hour because the key is revoked
}

// DailyRequests returns the accepted requests of each of the account's active keys for the last
// days (UTC), the oldest first and today last. Keys without requests are left out. The error may
// be [ErrUnavailable].
func (s *Store) DailyRequests(ctx context.Context, accountID uuid.UUID, days int) (map[uuid.UUID][]int64, error) {
	return s.requestSeries(ctx, accountID, usageByDay, days, activeKeys)
}

// DailyUsage returns the accepted and the refused requests of one of the account's keys, active or
// revoked, for the last days (UTC), the oldest first and today last. The error may be
// [ErrUnavailable].
func (s *Store) DailyUsage(ctx context.Context, accountID, keyID uuid.UUID, days int) (requests, refusals []int64, err error) {
	requests, refusals = make([]int64, days), make([]int64, days)
	first := s.clock().Truncate(Day).Add(-time.Duration(days-1) * Day)
	err = s.readUsage(ctx, accountID, usageByDay, first, keysWithID([]uuid.UUID{keyID}), func(_ uuid.UUID, at time.Time, n requestCounts) {
		if day := int(at.Sub(first) / Day); day < days {
			requests[day] += n.Requests
			refusals[day] += n.Refusals
		}
	})
	return requests, refusals, err
}

// HourlyRequests returns the accepted requests of each of these keys of the account, active or
// revoked, for the last hours (UTC), the oldest first and the current hour last. Keys without
// requests are left out. Hours are kept for two days. The error may be [ErrUnavailable].
func (s *Store) HourlyRequests(ctx context.Context, accountID uuid.UUID, hours int, keyIDs ...uuid.UUID) (map[uuid.UUID][]int64, error) {
	return s.requestSeries(ctx, accountID, usageByHour, hours, keysWithID(keyIDs))
}

// RecentUsage returns the recent usage of each of these keys of the account, active or revoked.
// Keys without usage are left out. The error may be [ErrUnavailable].
func (s *Store) RecentUsage(ctx context.Context, accountID uuid.UUID, keyIDs ...uuid.UUID) (map[uuid.UUID]RecentUsage, error) {
	now := s.clock()
	lastDay, lastHour := now.Add(-Day).Truncate(time.Hour), now.Add(-time.Hour).Truncate(time.Hour)
	report := map[uuid.UUID]RecentUsage{}
	err := s.readUsage(ctx, accountID, usageByHour, lastDay, keysWithID(keyIDs), func(keyID uuid.UUID, hour time.Time, n requestCounts) {
		usage := report[keyID]
		usage.Requests += n.Requests
		if !hour.Before(lastHour) {
			usage.Refusals += n.Refusals
		}
		if usage != (RecentUsage{}) {
			report[keyID] = usage
		}
	})
	if err != nil {
		return nil, err
	}
	return report, nil
}

// requestSeries returns the accepted requests of each selected key in each of the last periods,
// the current one last.
func (s *Store) requestSeries(ctx context.Context, accountID uuid.UUID, by usagePeriod, periods int, keys keyFilter) (map[uuid.UUID][]int64, error) {
	first := s.clock().Truncate(by.length).Add(-time.Duration(periods-1) * by.length)
	report := map[uuid.UUID][]int64{}
	err := s.readUsage(ctx, accountID, by, first, keys, func(keyID uuid.UUID, at time.Time, n requestCounts) {
		period := int(at.Sub(first) / by.length)
		if n.Requests == 0 || period >= periods {
			return
		}
		if report[keyID] == nil {
			report[keyID] = make([]int64, periods)
		}
		report[keyID][period] += n.Requests
	})
	if err != nil {
		return nil, err
	}
	return report, nil
}

// usagePeriod names the table that counts requests by the hour or by the day.
type usagePeriod struct {
	table, column string
	length        time.Duration
}

var (
	usageByHour = usagePeriod{"api_key_hourly_usage", "hour", time.Hour}
	usageByDay  = usagePeriod{"api_key_daily_usage", "day", Day}
)

// keyFilter selects keys of an account.
type keyFilter func(*bun.SelectQuery) *bun.SelectQuery

func activeKeys(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("api_key.revoked_at IS NULL") }

func keysWithID(ids []uuid.UUID) keyFilter {
	return func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("api_key.id IN (?)", bun.List(ids)) }
}

// readUsage calls visit with every count of the selected keys from first on: the stored counts and
// those that this instance has not written yet, which are always by the hour.
func (s *Store) readUsage(
	ctx context.Context, accountID uuid.UUID, by usagePeriod, first time.Time, keys keyFilter,
	visit func(keyID uuid.UUID, at time.Time, n requestCounts),
) error {
	s.usage.flushMu.RLock()
	defer s.usage.flushMu.RUnlock()
	var rows []struct {
		ID     uuid.UUID
		Period *time.Time // nil for a key without stored counts
		requestCounts
	}
	err := keys(s.db.NewSelect().Model((*APIKey)(nil))).
		ColumnExpr("api_key.id, stored.? AS period", bun.Ident(by.column)).
		ColumnExpr("COALESCE(stored.requests, 0) AS requests, COALESCE(stored.refusals, 0) AS refusals").
		Join("LEFT JOIN ? AS stored ON stored.api_key_id = api_key.id AND stored.? >= ?", bun.Ident(by.table), bun.Ident(by.column), first).
		Where("api_key.account_id = ?", accountID).Scan(ctx, &rows)
	if err != nil {
		return failed("read usage", err)
	}
	pending := map[uuid.UUID]bool{}
	for _, row := range rows {
		if row.Period != nil {
			visit(row.ID, *row.Period, row.requestCounts)
		}
		if pending[row.ID] {
			continue
		}
		pending[row.ID] = true
		s.usage.eachHour(row.ID, func(hour time.Time, n requestCounts) {
			if !hour.Before(first) {
				visit(row.ID, hour, n)
			}
		})
	}
	return nil
}
