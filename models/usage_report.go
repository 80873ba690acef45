package models

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/schema"
)

// Day is 24 hours of UTC.
const Day = 24 * time.Hour

type requestCounts struct{ Requests, Refusals int64 }

// AddUsage counts earlier requests with a key. It is for demo data.
func (s *Store) AddUsage(keyID uuid.UUID, at time.Time, requests, refusals int64) {
	s.usage.Count(keyID, at, requests, refusals)
}

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

// readUsage calls visit with every count of the selected keys from first on: the stored counts, the
// counts of each key's current hour, and the counts that this instance has not written yet. The
// last two are always by the hour. Package usage explains why each request is counted once.
func (s *Store) readUsage(
	ctx context.Context, accountID uuid.UUID, by usagePeriod, first time.Time, keys keyFilter,
	visit func(keyID uuid.UUID, at time.Time, n requestCounts),
) error {
	// A list has up to 3,000 stored counts. Reading them as one text for each key takes a
	// fraction of the time of a row for each count.
	past := s.db.NewSelect().TableExpr("? AS stored", bun.Ident(by.table)).
		ColumnExpr("string_agg(concat_ws(' ', ?, stored.requests, stored.refusals), ' ')", s.unixTime("stored."+by.column)).
		Where("stored.api_key_id = api_key.id AND stored.? >= ?", bun.Ident(by.column), first)
	// This query returns one row for each selected key, also for a key that was never used.
	query := keys(s.db.NewSelect().Model((*APIKey)(nil))).
		ColumnExpr("api_key.id, current.hour, COALESCE(current.requests, 0) AS requests, COALESCE(current.refusals, 0) AS refusals").
		ColumnExpr("COALESCE((SELECT piece FROM usage_flushes WHERE recorder_id = ?), 0) AS piece", s.usage.ID()).
		ColumnExpr("COALESCE((?), '') AS past", past).
		Join("LEFT JOIN api_key_last_uses AS current ON current.api_key_id = api_key.id").
		Where("api_key.account_id = ?", accountID)
	var rows []struct {
		ID   uuid.UUID
		Hour *time.Time // the current hour; nil for a key that was never used
		requestCounts
		Piece int64  // the last of this instance's pieces that the counts include
		Past  string // the time in seconds, the requests and the refusals of each stored count
	}
	if err := query.Scan(ctx, &rows); err != nil {
		return failed("read usage", err)
	}
	for _, row := range rows {
		err := eachCount(row.Past, func(at time.Time, n requestCounts) { visit(row.ID, at, n) })
		if err != nil {
			return failed("read usage", err)
		}
		if row.Hour != nil && !row.Hour.Before(first) {
			visit(row.ID, *row.Hour, row.requestCounts)
		}
		s.usage.Later(row.ID, row.Piece, func(hour time.Time, requests, refusals int64) {
			if !hour.Before(first) {
				visit(row.ID, hour, requestCounts{requests, refusals})
			}
		})
	}
	return nil
}

// unixTime returns the expression for the time in a column in seconds.
func (s *Store) unixTime(column string) schema.QueryWithArgs {
	if s.db.Dialect().Name() == dialect.PG {
		return bun.SafeQuery("CAST(date_part('epoch', ?) AS bigint)", bun.Ident(column))
	}
	return bun.SafeQuery("unixepoch(?)", bun.Ident(column))
}

// eachCount calls visit with each count of a text of readUsage: three numbers between spaces.
func eachCount(text string, visit func(at time.Time, n requestCounts)) error {
	var count [3]int64
	fields := 0
	for field := range strings.FieldsSeq(text) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return err
		}
		count[fields%3] = n
		if fields++; fields%3 == 0 {
			visit(time.Unix(count[0], 0), requestCounts{count[1], count[2]})
		}
	}
	return nil
}
