package keys

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/value"
)

// KeyDaysKept is how far back a report of usage goes.
const KeyDaysKept = 90 * value.Day

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
	keyID, ok := value.ParseID(id)
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
func (u *Usage) Days(ctx context.Context, accountID uuid.UUID, page DayPage) ([]KeyDay, error) {
	found := []KeyDay{}
	for limit := page.Limit; ; page.Limit = limit - len(found) {
		days, err := u.days(ctx, accountID, page)
		for _, day := range days {
			if day.Requests+day.Refusals+day.Calls+day.Seconds > 0 {
				found = append(found, day)
			}
		}
		if err != nil || len(days) < page.Limit || len(found) == limit {
			return found, value.Failed("report usage", err)
		}
		page.After = days[len(days)-1].Place()
	}
}

// days returns a page of the days that are noted for the account's keys. The calls of a day may
// have turned out to be none.
func (u *Usage) days(ctx context.Context, accountID uuid.UUID, page DayPage) ([]KeyDay, error) {
	until := u.keys.db.Now().Truncate(value.Day).Add(value.Day)
	first := until.Add(-KeyDaysKept)
	if page.From.After(first) {
		first = page.From
	}
	noted := u.keys.db.NewSelect().TableExpr("api_key_days").Column("day", "api_key_id").Where("account_id = ?", accountID).
		OrderExpr("day, api_key_id").Limit(int64(page.Limit))
	if page.After.Day.Before(first) {
		noted = noted.Where("day >= ?", first)
	} else {
		noted = noted.Where("(day, api_key_id) > (?, ?)", page.After.Day, page.After.KeyID)
	}
	if !page.Until.IsZero() {
		noted = noted.Where("day < ?", page.Until)
	}
	if page.KeyID != uuid.Nil {
		// With each of the days, the index leads to the key.
		var days []time.Time
		for day := until.Add(-KeyDaysKept); !day.After(until); day = day.Add(value.Day) {
			days = append(days, day)
		}
		noted = noted.Where("api_key_id = ? AND day IN (?)", page.KeyID, bun.List(days))
	}
	found := []KeyDay{}
	err := u.keys.db.NewSelect().TableExpr("(?) AS noted", noted).ColumnExpr("noted.day, noted.api_key_id AS key_id").
		ColumnExpr("COALESCE(past.requests, 0) + COALESCE(used.requests, 0) AS requests").
		ColumnExpr("COALESCE(past.refusals, 0) + COALESCE(used.refusals, 0) AS refusals").
		ColumnExpr("COALESCE(total.calls, 0) AS calls, COALESCE(total.seconds, 0) AS seconds").
		Join("LEFT JOIN api_key_daily_usage AS past ON past.api_key_id = noted.api_key_id AND past.day = noted.day").
		Join("LEFT JOIN api_key_last_uses AS used ON used.api_key_id = noted.api_key_id AND ? = noted.day", u.keys.db.DayOf("used.hour")).
		Join("LEFT JOIN call_totals AS total ON total.subject_id = noted.api_key_id AND total.day = noted.day").
		OrderExpr("noted.day, noted.api_key_id").Scan(ctx, &found)
	return found, err
}
