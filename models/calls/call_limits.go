package calls

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

// limitNotice is the fact that the owners know how much of a month's minutes is used.
type limitNotice struct {
	bun.BaseModel `bun:"table:limit_notices"`

	SubjectID uuid.UUID `bun:",pk"`
	Month     time.Time `bun:",pk"`
	Percent   int64     `bun:",pk"`
}

// limitPercents are the parts of a month's minutes about which the owners get mails.
var limitPercents = []struct {
	percent int64
	action  record.Action
}{{80, record.ActionLimitApproaching}, {100, record.ActionLimitReached}}

// noteUsedByKeys is noteUsedMinutes for several keys, in an order in which transactions do not wait
// for each other.
func noteUsedByKeys(ctx context.Context, tx db.Tx, keys map[uuid.UUID]callKey) error {
	for _, id := range value.SortedIDs(slices.Collect(maps.Keys(keys))) {
		if err := noteUsedMinutes(ctx, tx, keys[id]); err != nil {
			return err
		}
	}
	return nil
}

// noteUsedMinutes records how much of their minutes a key and its account have used this month,
// once for each part.
func noteUsedMinutes(ctx context.Context, tx db.Tx, key callKey) error {
	now, err := tx.DatabaseNow(ctx)
	if err != nil {
		return err
	}
	for _, subject := range []struct {
		id, keyID uuid.UUID
		label     string
		limit     int64
	}{
		{key.AccountID, uuid.Nil, key.AccountName, key.AccountLimits.MinutesPerMonth},
		{key.ID, key.ID, key.Label, key.Limits.MinutesPerMonth},
	} {
		if subject.limit == 0 {
			continue
		}
		used, err := UsedCalls(ctx, tx, tx.DB, key.AccountID, subject.keyID, now)
		if err != nil {
			return err
		}
		for _, part := range limitPercents {
			if 100*used.Seconds < part.percent*60*subject.limit {
				continue
			}
			notice := limitNotice{SubjectID: subject.id, Month: monthOf(now), Percent: part.percent}
			first, err := value.Affected(tx.NewInsert().Model(&notice).On("CONFLICT DO NOTHING").Exec(ctx))
			if err != nil {
				return err
			}
			if first == 0 {
				continue
			}
			err = record.Add(ctx, tx, record.System, record.Activity{
				AccountID: key.AccountID, Action: part.action, SubjectID: &subject.id, Label: subject.label,
				Detail: limitDetail(part.percent, subject.limit, notice.Month),
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// limitDetail returns how much of a month's minutes is used, such as "80% of 1,000 minutes in
// November 2026".
func limitDetail(percent, minutes int64, month time.Time) string {
	digits := strconv.FormatInt(minutes, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return fmt.Sprintf("%d%% of %s minutes in %s", percent, digits, month.Format("January 2006"))
}

const (
	// knownToTokens is how long a list of rooms is recent enough to refuse tokens: longer than
	// the time between two lists while a limit is set.
	knownToTokens = 3 * busyInterval
	// limitWait is when a refused token may be requested again.
	limitWait = 10 * time.Second
)

// CheckCalls returns a [*LimitError] if a key or its account can open no other call. It reads the
// limits and what is used in one statement.
func CheckCalls(ctx context.Context, db bun.IDB, d *db.DB, accountID, keyID uuid.UUID) error {
	var row struct {
		Now            time.Time
		ListedAt       *time.Time
		Limits         value.Limits
		AccountLimits  value.Limits
		Calls          int64
		Seconds        int64
		AccountCalls   int64
		AccountSeconds int64
	}
	query := db.NewSelect().TableExpr("api_keys AS api_key").ColumnExpr("? AS now", d.ClockExpr()).
		ColumnExpr("r.listed_at, api_key.limits, a.limits AS account_limits").
		ColumnExpr("k.calls, k.seconds, o.calls AS account_calls, o.seconds AS account_seconds").
		Join("JOIN accounts AS a ON a.id = api_key.account_id").
		Join("CROSS JOIN call_rounds AS r").
		Join("CROSS JOIN (?) AS k", usedQuery(db, d, accountID, keyID, d.Now())).
		Join("CROSS JOIN (?) AS o", usedQuery(db, d, accountID, uuid.Nil, d.Now())).
		Where("api_key.id = ?", keyID)
	if err := query.Scan(ctx, &row); err != nil {
		return value.NoRows(err, nil) // the key has been deleted
	}
	if row.ListedAt == nil || row.Now.Sub(*row.ListedAt) > knownToTokens {
		return nil
	}
	for _, subject := range []struct {
		limits         value.Limits
		calls, seconds int64
	}{{row.Limits, row.Calls, row.Seconds}, {row.AccountLimits, row.AccountCalls, row.AccountSeconds}} {
		if limit := subject.limits.MinutesPerMonth; limit > 0 && subject.seconds >= 60*limit {
			next := monthOf(row.Now).AddDate(0, 1, 0)
			return &LimitError{EndLimitPerMonth, min(value.Day, next.Sub(row.Now))}
		}
		if limit := subject.limits.Calls; limit > 0 && subject.calls >= limit {
			return &LimitError{EndLimitCalls, limitWait}
		}
	}
	return nil
}

// UsedCalls is [Calls.Used] at a time.
func UsedCalls(ctx context.Context, db bun.IDB, d *db.DB, accountID, keyID uuid.UUID, now time.Time) (used Used, err error) {
	return used, usedQuery(db, d, accountID, keyID, now).Scan(ctx, &used.Calls, &used.Seconds)
}

// usedQuery selects the columns calls and seconds of [UsedCalls]. If a call ends now, it does not
// have fewer seconds, although LiveKit reports the end in whole seconds.
func usedQuery(db bun.IDB, d *db.DB, accountID, keyID uuid.UUID, now time.Time) *bun.SelectQuery {
	month, subject := monthOf(now), accountID
	started := d.UnixTimeUp("call.started_at")
	open := db.NewSelect().Model((*Call)(nil)).
		ColumnExpr("count(*) AS calls").
		ColumnExpr("COALESCE(sum(?0 - CASE WHEN ?1 > ?0 THEN ?0 WHEN ?1 < ?2 THEN ?2 ELSE ?1 END), 0) AS seconds", now.Unix(), started, month.Unix()).
		Where("call.ended_at IS NULL AND call.account_id = ?", accountID)
	if keyID != uuid.Nil {
		open, subject = open.Where("call.api_key_id = ?", keyID), keyID
	}
	ended := db.NewSelect().Model((*callTotal)(nil)).ColumnExpr("COALESCE(sum(total.seconds), 0)").
		Where("total.subject_id = ? AND total.day >= ?", subject, month)
	return db.NewSelect().TableExpr("(?) AS o", open).ColumnExpr("o.calls, CAST(o.seconds + (?) AS bigint) AS seconds", ended)
}
