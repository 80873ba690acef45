package keys

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/usage"
	"portal/models/value"
)

// UsageSpan is a number of whole hours or days (UTC). The last one is the current one.
type UsageSpan struct {
	table, column string // the stored counts
	period        time.Duration
	n             int
}

// Hours returns the span of the last n hours. Usage by the hour is kept for two days.
func Hours(n int) UsageSpan {
	return UsageSpan{table: "api_key_hourly_usage", column: "hour", period: time.Hour, n: n}
}

// Days returns the span of the last n days. Usage by the day is kept for 400 days.
func Days(n int) UsageSpan {
	return UsageSpan{table: "api_key_daily_usage", column: "day", period: value.Day, n: n}
}

// String returns the length of the span, such as "24 hours".
func (s UsageSpan) String() string { return fmt.Sprintf("%d %ss", s.n, s.column) }

// Unit returns "hour" or "day".
func (s UsageSpan) Unit() string { return s.column }

// Starts returns the start of each hour or day of the span that ends at now.
func (s UsageSpan) Starts(now time.Time) []time.Time {
	starts := make([]time.Time, s.n)
	for i := range starts {
		starts[i] = now.UTC().Truncate(s.period).Add(time.Duration(i-s.n+1) * s.period)
	}
	return starts
}

// KeyUsage is a key with its requests in each hour or on each day of a span, the oldest first.
type KeyUsage struct {
	Key
	Requests []int64 // accepted
	Refusals []int64 // refused because the key or the account does not work
}

// Total returns the requests in the whole span.
func (u KeyUsage) Total() (requests, refusals int64) {
	for i := range u.Requests {
		requests += u.Requests[i]
		refusals += u.Refusals[i]
	}
	return requests, refusals
}

// Add counts earlier requests with a key, for demo data.
func (u *Usage) Add(key Key, from Source, at time.Time, requests, refusals int64) {
	u.keys.usage.Count(key.AccountID, key.ID, from, at, requests, refusals)
}

// KeyList is what the list of an account's keys shows.
type KeyList struct {
	Active []KeyUsage // the newest first
	Leaked []Key      // were revoked as leaked, the latest first
	Ended  bool       // any key of the account was revoked or has expired
}

// OfList returns an account's list of keys, with up to limit keys that were revoked as leaked after
// since. One statement reads all of it.
func (u *Usage) OfList(ctx context.Context, accountID uuid.UUID, span UsageSpan, since time.Time, limit int) (list KeyList, err error) {
	now := u.keys.db.Now()
	leaked := idsOf(u.keys.db, accountID).Where("api_key.leak_reporter IS NOT NULL AND api_key.revoked_at > ?", since).
		OrderExpr("api_key.revoked_at DESC").Limit(int64(limit))
	last := idsOf(u.keys.db, accountID).Where(keyEnd+" <= ?", now).OrderExpr(keyEnd + " DESC, api_key.id DESC").Limit(1)
	read, err := u.read(ctx, span, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("api_key.id IN (SELECT id FROM (?) AS active UNION ALL SELECT id FROM (?) AS leaked UNION ALL SELECT id FROM (?) AS ended)",
			whereActive(u.keys.db, idsOf(u.keys.db, accountID)), leaked, last)
	})
	for _, key := range read {
		switch {
		case key.EndedAt(now) == nil:
			list.Active = append(list.Active, key)
			continue
		case key.Leak != record.Leak{} && key.RevokedAt != nil && key.RevokedAt.After(since):
			list.Leaked = append(list.Leaked, key.Key)
		}
		list.Ended = true
	}
	slices.SortFunc(list.Leaked, func(a, b Key) int { return b.RevokedAt.Compare(*a.RevokedAt) })
	return list, err
}

// Of returns the usage of each of these keys of the account, active or revoked, by id.
func (u *Usage) Of(ctx context.Context, accountID uuid.UUID, span UsageSpan, keyIDs ...uuid.UUID) (map[uuid.UUID]KeyUsage, error) {
	keys, err := u.read(ctx, span, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("api_key.account_id = ? AND api_key.id IN (?)", accountID, bun.List(keyIDs))
	})
	byID := make(map[uuid.UUID]KeyUsage, len(keys))
	for _, key := range keys {
		byID[key.ID] = key
	}
	return byID, err
}

// OfKey returns the usage of one of the account's keys, active or revoked, or
// [value.ErrKeyNotFound].
func (u *Usage) OfKey(ctx context.Context, accountID uuid.UUID, span UsageSpan, keyID uuid.UUID) (KeyUsage, error) {
	found, err := u.Of(ctx, accountID, span, keyID)
	key, ok := found[keyID]
	if err == nil && !ok {
		err = value.ErrKeyNotFound
	}
	return key, err
}

// MaxUsageKeys is the maximum number of keys that [Usage.OfAccount] returns.
const MaxUsageKeys = 1000

// OfAccount returns the usage of the account's keys: of the active ones, and of those that were
// revoked in the span or used since it began. If the account has more than [MaxUsageKeys] keys, it
// chooses among the active ones and those that ended last, because the others have no bound.
func (u *Usage) OfAccount(ctx context.Context, accountID uuid.UUID, span UsageSpan) ([]KeyUsage, error) {
	now := u.keys.db.Now()
	first := span.Starts(now)[0]
	active := whereActive(u.keys.db, idsOf(u.keys.db, accountID))
	ended := idsOf(u.keys.db, accountID).Where(keyEnd+" <= ?", now).
		OrderExpr(keyEnd + " DESC, api_key.id DESC").Limit(MaxUsageKeys)
	// An instance that writes late can make an earlier hour the current one.
	past := u.keys.db.NewSelect().TableExpr("? AS used", bun.Ident(span.table)).ColumnExpr("1").
		Where("used.api_key_id = api_key.id AND used.? >= ?", bun.Ident(span.column), first)
	return u.read(ctx, span, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("api_key.id IN (SELECT id FROM (?) AS active UNION ALL SELECT id FROM (?) AS ended)", active, ended).
			Where("(COALESCE(api_key.revoked_at, api_key.expires_at, ?0) >= ?0 OR last_use.hour >= ?0 OR EXISTS (?1))", first, past).
			OrderExpr("NOT "+db.ActiveKey+", "+keyEnd+" DESC", now).Limit(MaxUsageKeys)
	})
}

// SumUsage returns the usage of all these keys together, in a KeyUsage without a key.
func SumUsage(keys []KeyUsage) (sum KeyUsage) {
	for _, key := range keys {
		if sum.Requests == nil {
			sum.Requests, sum.Refusals = make([]int64, len(key.Requests)), make([]int64, len(key.Refusals))
		}
		for i := range key.Requests {
			sum.Requests[i] += key.Requests[i]
			sum.Refusals[i] += key.Refusals[i]
		}
	}
	return sum
}

// read returns the selected keys, the newest first. It adds the stored counts, those of each
// key's current hour, and those that this instance has not written yet. The last two are by the
// hour.
func (u *Usage) read(ctx context.Context, span UsageSpan, filter keyFilter) (keys []KeyUsage, err error) {
	err = u.keys.usage.Read(ctx, func(since usage.Mark) (certain bool, err error) {
		keys, certain, err = u.readOnce(ctx, span, filter, since)
		return certain, err
	})
	return keys, value.Failed("read usage", err)
}

func (u *Usage) readOnce(ctx context.Context, span UsageSpan, filter keyFilter, since usage.Mark) (keys []KeyUsage, certain bool, err error) {
	first := span.Starts(u.keys.db.Now())[0]
	var rows []struct {
		Key `bun:",extend"`
		// The current hour; nil for a key that was never used.
		Hour     *time.Time `bun:",scanonly"`
		Requests int64      `bun:",scanonly"` // in the current hour
		Refusals int64      `bun:",scanonly"`
		// Each stored count: seconds, requests, refusals.
		Past string `bun:",scanonly"`
	}
	// A list has up to 3,000 stored counts. Reading them as one text for each key takes a
	// fraction of the time of a row for each count.
	past := u.keys.db.NewSelect().TableExpr("? AS stored", bun.Ident(span.table)).
		ColumnExpr("string_agg(concat_ws(' ', ?, stored.requests, stored.refusals), ' ')", u.keys.db.UnixTime("stored."+span.column)).
		Where("stored.api_key_id = api_key.id AND stored.? >= ?", bun.Ident(span.column), first)
	query := filter(selectKeys(u.keys.db, &rows)).OrderExpr("api_key.id DESC").
		ColumnExpr("last_use.hour, COALESCE(last_use.requests, 0) AS requests, COALESCE(last_use.refusals, 0) AS refusals").
		ColumnExpr("COALESCE((?), '') AS past", past)
	if err := query.Scan(ctx); err != nil {
		return nil, false, err
	}
	keys, certain = make([]KeyUsage, len(rows)), true
	for i, row := range rows {
		used := KeyUsage{Key: row.Key, Requests: make([]int64, span.n), Refusals: make([]int64, span.n)}
		add := func(at time.Time, requests, refusals int64) {
			if period := int(at.Sub(first) / span.period); !at.Before(first) && period < span.n {
				used.Requests[period] += requests
				used.Refusals[period] += refusals
			}
		}
		if err := eachCount(row.Past, add); err != nil {
			return nil, false, err
		}
		if row.Hour != nil {
			add(*row.Hour, row.Requests, row.Refusals)
		}
		certain = u.keys.usage.Unwritten(row.ID, row.LastUsedAt, since, add) && certain
		used.LastUsedAt = u.keys.usage.LastUse(row.ID, row.LastUsedAt)
		keys[i] = used
	}
	return keys, certain, nil
}

// eachCount calls visit with each count of a text of read: three numbers between spaces.
func eachCount(text string, visit func(at time.Time, requests, refusals int64)) error {
	var count [3]int64
	fields := 0
	for field := range strings.FieldsSeq(text) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return err
		}
		count[fields%3] = n
		if fields++; fields%3 == 0 {
			visit(time.Unix(count[0], 0), count[1], count[2])
		}
	}
	return nil
}
