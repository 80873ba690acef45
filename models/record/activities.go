package record

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/value"
)

// ActivityLog is the append-only log of what users, operators and visitors did in an account.
type ActivityLog struct {
	db *db.DB

	heldBack time.Duration // in reports
}

// NewActivityLog returns the log, whose reports hold entries back for this time.
func NewActivityLog(db *db.DB, heldBack time.Duration) *ActivityLog {
	return &ActivityLog{db: db, heldBack: heldBack}
}

// ActivityPage selects a page of the activity log.
type ActivityPage struct {
	Before uuid.UUID // return only activities before this Position; zero for the first page
	Limit  int       // the maximum number of activities

	// Only activities that match all of these are returned. A zero value matches every
	// activity.
	Actions     []Action
	ActorKind   ActorKind
	ActorID     uuid.UUID // the user
	KeyID       uuid.UUID // the key that is the subject
	From, Until time.Time // Until is exclusive
	// Part of a label, user or address, or the last four characters of a key.
	Search string
}

// List returns a page of the account's activity log, the newest first. A repeated activity has the
// place and time of its last repeat.
func (l *ActivityLog) List(ctx context.Context, accountID uuid.UUID, page ActivityPage) ([]Activity, error) {
	// Two queries in one statement, because each of them has an index for its order.
	once := l.query(accountID, page, "activity.id", "activity.at").ColumnExpr("0 AS repeats, FALSE AS elsewhere").
		Where("activity.action NOT IN (?)", bun.List(repeatable))
	repeated := l.query(accountID, page, "r.last_id", "r.last_at").ColumnExpr("r.repeats, r.elsewhere").
		Join("JOIN activity_repeats AS r ON r.activity_id = activity.id").Where("r.account_id = ?", accountID)
	activities := []Activity{}
	err := l.db.NewRaw("SELECT once.* FROM (?) AS once UNION ALL SELECT repeated.* FROM (?) AS repeated ORDER BY position DESC LIMIT ?",
		once, repeated, page.Limit).Scan(ctx, &activities)
	for i := range activities {
		activities[i].At = activities[i].LastAt
	}
	return activities, value.Failed("list activity", err)
}

// SelectActivities selects activities with the names of their actors and the leaks of their
// subjects.
func SelectActivities(db bun.IDB, into *[]Activity) *bun.SelectQuery {
	return db.NewSelect().Model(into).ColumnExpr("?TableColumns").
		ColumnExpr("COALESCE(u.email, CASE activity.actor_kind WHEN ? THEN 'Operator' WHEN ? THEN 'The portal' ELSE 'Someone' END) AS actor_name", ActorOperator, ActorSystem).
		ColumnExpr("COALESCE(k.leak_reporter, '') AS leak_reporter, COALESCE(k.leak_url, '') AS leak_url").
		Join("LEFT JOIN users AS u ON u.id = activity.actor_id").
		Join("LEFT JOIN api_keys AS k ON k.id = activity.subject_id AND k.account_id = activity.account_id")
}

// query selects a page of activities, with these columns as their position and time.
func (l *ActivityLog) query(accountID uuid.UUID, page ActivityPage, position, at bun.Ident) *bun.SelectQuery {
	return SelectActivities(l.db, new([]Activity)).
		ColumnExpr("COALESCE(k.last_four, '') AS key_last_four, COALESCE(replaced.last_four, '') AS replaced_last_four").
		ColumnExpr("? AS position, ? AS last_at", position, at).
		ColumnExpr("COALESCE((SELECT c.former_label FROM activities AS c WHERE c.subject_id = activity.actor_id "+
			"AND c.action = ? AND c.id > activity.id ORDER BY c.id LIMIT 1), '') AS actor_then", ActionEmailChanged).
		Join("LEFT JOIN api_keys AS replaced ON replaced.id = k.replaces_id AND replaced.account_id = activity.account_id AND activity.action = ?", ActionKeyGenerated).
		Where("activity.account_id = ?", accountID).
		OrderExpr("? DESC", position).Limit(int64(page.Limit)).
		Apply(
			db.WhereIf(page.Before != uuid.Nil, "? < ?", position, page.Before),
			db.WhereIf(len(page.Actions) > 0, "activity.action IN (?)", bun.List(page.Actions)),
			db.WhereIf(page.ActorKind != "", "activity.actor_kind = ?", page.ActorKind),
			db.WhereIf(page.ActorID != uuid.Nil, "activity.actor_id = ?", page.ActorID),
			db.WhereIf(page.KeyID != uuid.Nil, "activity.subject_id = ?", page.KeyID),
			db.WhereIf(!page.From.IsZero(), "? >= ?", at, page.From),
			db.WhereIf(!page.Until.IsZero(), "? < ?", at, page.Until),
			page.search,
		)
}

// ActivityReport selects a page of a report of activities.
type ActivityReport struct {
	AccountID   uuid.UUID // zero: all accounts, for operators
	After       uuid.UUID // the last activity of the previous page; zero for the first page
	From, Until time.Time // Until is exclusive
	Limit       int       // the maximum number of activities
}

const (
	// ActivityHeldBack is how old an activity is before a report has it. Ids sort by time, but
	// clocks differ by up to MaxClockSkew, and a transaction lasts up to 10 s until others see
	// its activities. All activities below the newest one of a report are therefore in it: none
	// appears behind a reader's back.
	ActivityHeldBack = 30 * time.Second
	// idSlack is more than the time of an activity and that in its id differ by.
	idSlack = time.Hour
)

// Report returns a page of activities, the oldest first. An activity is in it once, with the time
// of the first repeat and the number of repeats at this time.
func (l *ActivityLog) Report(ctx context.Context, page ActivityReport) ([]Activity, error) {
	now, err := l.db.ClockNow(ctx)
	if err != nil {
		return nil, value.Failed("report activity", err)
	}
	above, below := page.After, value.LowestID(now.Add(-l.heldBack))
	rows := l.db.NewSelect().Table("activities").Limit(int64(page.Limit))
	// The ranges of ids bound what the statement reads. Pairs of columns, COALESCE and a page
	// before the joins keep PostgreSQL without statistics from expecting few rows: it would
	// read all of them and sort them.
	if !page.From.IsZero() {
		rows = rows.Where("COALESCE(at >= ?, FALSE)", page.From)
		above = slices.MaxFunc([]uuid.UUID{above, value.LowestID(page.From.Add(-idSlack))}, value.CompareIDs)
	}
	if !page.Until.IsZero() {
		rows = rows.Where("COALESCE(at < ?, FALSE)", page.Until)
		below = slices.MinFunc([]uuid.UUID{below, value.LowestID(page.Until.Add(idSlack))}, value.CompareIDs)
	}
	if page.AccountID == uuid.Nil {
		rows = rows.Where("id > ? AND id < ?", above, below).OrderExpr("id")
	} else {
		rows = rows.Where("(account_id, id) > (?0, ?1) AND (account_id, id) < (?0, ?2)", page.AccountID, above, below).OrderExpr("account_id, id")
	}
	activities := []Activity{}
	err = SelectActivities(l.db, &activities).ModelTableExpr("(?) AS activity", rows).
		ColumnExpr("COALESCE(r.repeats, 0) AS repeats").
		Join("LEFT JOIN activity_repeats AS r ON r.activity_id = activity.id").
		OrderExpr("activity.id").Scan(ctx)
	return activities, value.Failed("report activity", err)
}

// search adds the condition that an activity has the text.
func (p ActivityPage) search(query *bun.SelectQuery) *bun.SelectQuery {
	if p.Search == "" {
		return query
	}
	pattern, lower := "%"+likeEscaper.Replace(p.Search)+"%", bun.Safe("LOWER")
	if strings.ContainsFunc(p.Search, func(r rune) bool { return r >= utf8.RuneSelf }) && !db.IsPostgres(query.DB()) {
		lower = "unicode_lower" // see package database; slower
	}
	return query.WhereGroup(" AND ", func(query *bun.SelectQuery) *bun.SelectQuery {
		for _, column := range []string{"activity.label", "activity.former_label", "u.email", "activity.address"} {
			query = query.WhereOr("?0(?1) LIKE ?0(?2) ESCAPE '!'", lower, bun.Ident(column), pattern)
		}
		return query.WhereOr("k.last_four = ?", p.Search)
	})
}

var likeEscaper = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")
