package models

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// keyDaysKept is how far back a report of usage goes.
const keyDaysKept = 90 * Day

// KeyDay is the usage of a key on a day (UTC).
type KeyDay struct {
	Day      time.Time
	KeyID    uuid.UUID
	Requests int64 // accepted
	Refusals int64
	Calls    int64 // that began on the day
	Seconds  int64 // that ended calls lasted on the day
}

// KeyDayElement is a KeyDay as programs get it.
type KeyDayElement struct {
	Day      string    `json:"day"` // such as 2026-11-22
	KeyID    uuid.UUID `json:"keyId"`
	Requests int64     `json:"requests"`
	Refused  int64     `json:"refused"`
	Calls    int64     `json:"calls"`
	Seconds  int64     `json:"seconds"`
}

// Element returns the day as programs get it.
func (d KeyDay) Element() KeyDayElement {
	return KeyDayElement{
		Day: d.Day.UTC().Format(time.DateOnly), KeyID: d.KeyID, Requests: d.Requests, Refused: d.Refusals, Calls: d.Calls, Seconds: d.Seconds,
	}
}

// DayPlace is the place of a KeyDay in a report.
type DayPlace struct {
	Day   time.Time
	KeyID uuid.UUID
}

// Place returns the place of the day.
func (d KeyDay) Place() DayPlace { return DayPlace{d.Day.UTC(), d.KeyID} }

// String returns the place as [ParseDayPlace] reads it.
func (p DayPlace) String() string { return p.Day.Format(time.DateOnly) + "_" + p.KeyID.String() }

// ParseDayPlace returns a place from its text, and reports false for any other text.
func ParseDayPlace(text string) (DayPlace, bool) {
	day, id, _ := strings.Cut(text, "_")
	at, err := time.Parse(time.DateOnly, day)
	keyID, ok := ParseID(id)
	return DayPlace{at, keyID}, err == nil && ok
}

// DayPage selects a page of a report of usage.
type DayPage struct {
	KeyID       uuid.UUID // zero: all keys
	From, Until time.Time // of the start of the day; Until is exclusive
	After       DayPlace  // the last day of the previous page; zero for the first page
	Limit       int       // the maximum number of days
}

// Days returns a page of the usage of the account's keys in the last 90 days, by day and key, the
// oldest first. Days without usage are left out, and the last half a second may be missing.
func (k *Keys) Days(ctx context.Context, accountID uuid.UUID, page DayPage) ([]KeyDay, error) {
	first := k.db.Now().Add(-keyDaysKept).Truncate(Day).Add(Day)
	for _, later := range []time.Time{page.From, page.After.Day} {
		if later.After(first) {
			first = later
		}
	}
	days := func(table string, key, day any, counts string) *bun.SelectQuery {
		query := k.db.NewSelect().TableExpr(table).ColumnExpr("? AS day, ? AS key_id", day, key).ColumnExpr(counts).
			Join("JOIN api_keys AS k ON k.id = ?", key).
			Where("k.account_id = ? AND ? >= ?", accountID, day, first)
		if page.KeyID != uuid.Nil {
			query = query.Where("k.id = ?", page.KeyID)
		}
		if !page.Until.IsZero() {
			query = query.Where("? < ?", day, page.Until)
		}
		return query
	}
	past := days("api_key_daily_usage AS past", bun.Ident("past.api_key_id"), bun.Ident("past.day"),
		"past.requests, past.refusals AS refusals, 0 AS calls, 0 AS seconds")
	current := days("api_key_last_uses AS used", bun.Ident("used.api_key_id"), k.db.dayOf("used.hour"), "used.requests, used.refusals, 0, 0").
		Where("used.hour IS NOT NULL")
	calls := days("call_totals AS total", bun.Ident("total.subject_id"), bun.Ident("total.day"), "0, 0, total.calls, total.seconds")
	found := []KeyDay{}
	query := k.db.NewSelect().TableExpr("(?) AS part", past.UnionAll(current).UnionAll(calls)).
		ColumnExpr("part.day, part.key_id, CAST(sum(part.requests) AS bigint) AS requests, CAST(sum(part.refusals) AS bigint) AS refusals").
		ColumnExpr("CAST(sum(part.calls) AS bigint) AS calls, CAST(sum(part.seconds) AS bigint) AS seconds").
		GroupExpr("part.day, part.key_id").
		Having("sum(part.requests) + sum(part.refusals) + sum(part.calls) + sum(part.seconds) > 0").
		OrderExpr("part.day, part.key_id").Limit(int64(page.Limit))
	if page.After != (DayPlace{}) {
		query = query.Where("(part.day, part.key_id) > (?, ?)", page.After.Day, page.After.KeyID)
	}
	return found, failed("report usage", query.Scan(ctx, &found))
}
