package models

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// Day is 24 hours of UTC.
const Day = 24 * time.Hour

type requestCounts struct {
	Requests int64 `bun:",scanonly"`
	Refusals int64 `bun:",scanonly"`
}

// AddUsage counts earlier requests with a key. It is for demo data.
func (k *Keys) AddUsage(key Key, at time.Time, requests, refusals int64) {
	k.usage.Count(key.AccountID, key.ID, at, requests, refusals)
}

// RecentUsage is the recent usage of one key. It counts whole hours, so each count can cover up to
// one hour more than its name says.
type RecentUsage struct {
	Requests int64 // accepted in the last 24 hours
	Refusals int64 // refused in the last hour because the key is revoked
}

// ActiveWithUsage is [Keys.Active] with the accepted requests of each key for the last days
// (UTC), the oldest first and today last. Keys without requests are left out of daily. One
// statement reads both, because the list of keys shows both.
func (k *Keys) ActiveWithUsage(ctx context.Context, accountID uuid.UUID, days int) (keys []Key, daily map[uuid.UUID][]int64, err error) {
	var rows []struct {
		Key `bun:",extend"`
		usageRow
	}
	series := k.newSeries(usageByDay, days)
	query := selectKeys(k.db, &rows).Where("api_key.account_id = ? AND api_key.revoked_at IS NULL", accountID).
		OrderExpr("api_key.id DESC")
	if err := k.withUsage(query, usageByDay, series.first).Scan(ctx); err != nil {
		return nil, nil, failed("list API keys", err)
	}
	keys = make([]Key, len(rows))
	for i, row := range rows {
		keys[i] = row.Key
		keys[i].LastUsedAt = k.usage.LastUse(row.ID, row.LastUsedAt)
		if err := k.eachUsage(row.ID, row.usageRow, series.first, series.add); err != nil {
			return nil, nil, failed("read usage", err)
		}
	}
	return keys, series.requests, nil
}

// DailyUsage returns the accepted and the refused requests of one of the account's keys, active or
// revoked, for the last days (UTC), the oldest first and today last. The error may be
// [ErrUnavailable].
func (k *Keys) DailyUsage(ctx context.Context, accountID, keyID uuid.UUID, days int) (requests, refusals []int64, err error) {
	requests, refusals = make([]int64, days), make([]int64, days)
	first := k.db.Now().Truncate(Day).Add(-time.Duration(days-1) * Day)
	err = k.readUsage(ctx, accountID, usageByDay, first, keysWithID([]uuid.UUID{keyID}), func(_ uuid.UUID, at time.Time, n requestCounts) {
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
func (k *Keys) HourlyRequests(ctx context.Context, accountID uuid.UUID, hours int, keyIDs ...uuid.UUID) (map[uuid.UUID][]int64, error) {
	series := k.newSeries(usageByHour, hours)
	err := k.readUsage(ctx, accountID, usageByHour, series.first, keysWithID(keyIDs), series.add)
	if err != nil {
		return nil, err
	}
	return series.requests, nil
}

// RecentUsage returns the recent usage of each of these keys of the account, active or revoked.
// Keys without usage are left out. The error may be [ErrUnavailable].
func (k *Keys) RecentUsage(ctx context.Context, accountID uuid.UUID, keyIDs ...uuid.UUID) (map[uuid.UUID]RecentUsage, error) {
	now := k.db.Now()
	lastDay, lastHour := now.Add(-Day).Truncate(time.Hour), now.Add(-time.Hour).Truncate(time.Hour)
	report := map[uuid.UUID]RecentUsage{}
	err := k.readUsage(ctx, accountID, usageByHour, lastDay, keysWithID(keyIDs), func(keyID uuid.UUID, hour time.Time, n requestCounts) {
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

// series collects the accepted requests of keys in each of some periods.
type series struct {
	first    time.Time // start of the first period
	period   time.Duration
	periods  int
	requests map[uuid.UUID][]int64 // by key, the oldest period first
}

// newSeries returns a series of this many periods, the current one last.
func (k *Keys) newSeries(by usagePeriod, periods int) series {
	first := k.db.Now().Truncate(by.length).Add(-time.Duration(periods-1) * by.length)
	return series{first, by.length, periods, map[uuid.UUID][]int64{}}
}

func (s series) add(keyID uuid.UUID, at time.Time, n requestCounts) {
	period := int(at.Sub(s.first) / s.period)
	if n.Requests == 0 || period >= s.periods {
		return
	}
	if s.requests[keyID] == nil {
		s.requests[keyID] = make([]int64, s.periods)
	}
	s.requests[keyID][period] += n.Requests
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

func keysWithID(ids []uuid.UUID) keyFilter {
	return func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("api_key.id IN (?)", bun.List(ids)) }
}

// usageRow is the usage of one key in the result of a statement of withUsage.
type usageRow struct {
	Hour          *time.Time `bun:",scanonly"` // the current hour; nil for a key that was never used
	requestCounts            // in the current hour
	UsedAt        *time.Time `bun:",scanonly"` // nil if the key was never used
	Past          string     `bun:",scanonly"` // the time in seconds, the requests and the refusals of each stored count
}

// visitUsage is called with the requests of a key in an hour or on a day.
type visitUsage func(keyID uuid.UUID, at time.Time, n requestCounts)

// readUsage calls visit with every count of the selected keys from first on: the stored counts, the
// counts of each key's current hour, and the counts that this instance has not written yet. The
// last two are always by the hour.
func (k *Keys) readUsage(
	ctx context.Context, accountID uuid.UUID, by usagePeriod, first time.Time, keys keyFilter, visit visitUsage,
) error {
	var rows []struct {
		ID uuid.UUID
		usageRow
	}
	query := keys(k.db.NewSelect().Model((*Key)(nil))).Column("api_key.id").
		Join(joinLastUses).Where("api_key.account_id = ?", accountID)
	if err := k.withUsage(query, by, first).Scan(ctx, &rows); err != nil {
		return failed("read usage", err)
	}
	for _, row := range rows {
		if err := k.eachUsage(row.ID, row.usageRow, first, visit); err != nil {
			return failed("read usage", err)
		}
	}
	return nil
}

// withUsage adds the columns of usageRow to a query of keys that joins their last uses. The query
// still returns one row for each key, also for a key that was never used.
func (k *Keys) withUsage(query *bun.SelectQuery, by usagePeriod, first time.Time) *bun.SelectQuery {
	// A list has up to 3,000 stored counts. Reading them as one text for each key takes a
	// fraction of the time of a row for each count.
	past := k.db.NewSelect().TableExpr("? AS stored", bun.Ident(by.table)).
		ColumnExpr("string_agg(concat_ws(' ', ?, stored.requests, stored.refusals), ' ')", k.db.unixTime("stored."+by.column)).
		Where("stored.api_key_id = api_key.id AND stored.? >= ?", bun.Ident(by.column), first)
	return query.
		ColumnExpr("last_use.hour, last_use.used_at, COALESCE(last_use.requests, 0) AS requests, COALESCE(last_use.refusals, 0) AS refusals").
		ColumnExpr("COALESCE((?), '') AS past", past)
}

// eachUsage calls visit with every count of a key from first on.
func (k *Keys) eachUsage(keyID uuid.UUID, row usageRow, first time.Time, visit visitUsage) error {
	err := eachCount(row.Past, func(at time.Time, n requestCounts) { visit(keyID, at, n) })
	if err != nil {
		return err
	}
	if row.Hour != nil && !row.Hour.Before(first) {
		visit(keyID, *row.Hour, row.requestCounts)
	}
	k.usage.Unwritten(keyID, row.UsedAt, func(hour time.Time, requests, refusals int64) {
		if !hour.Before(first) {
			visit(keyID, hour, requestCounts{requests, refusals})
		}
	})
	return nil
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
