package models

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/value"
)

// Figures are sizes and ages, for metrics. To count the keys, the database reads their table.
type Figures struct {
	Accounts     int
	ActiveKeys   int   // neither revoked nor expired
	ExpiringKeys int   // active keys that expire within a week
	DatabaseSize int64 // in bytes; SQLite: without the write-ahead log
	// Of this machine's clock, compared with the database's; SQLite: 0.
	ClockAhead time.Duration
	LastBackup time.Time // when the newest recorded backup began; zero: never
}

// Figures reads the figures. The error may be [value.ErrUnavailable].
func (s *Store) Figures(ctx context.Context) (f Figures, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout)
	defer cancel()
	size := bun.Safe("(SELECT page_count * page_size FROM pragma_page_count, pragma_page_size)")
	if db.IsPostgres(s.db) {
		size = "pg_database_size(current_database())"
	}
	now := s.db.Now()
	const active = "count(*) FILTER (WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"
	var backup bun.NullTime
	err = s.db.NewSelect().
		ColumnExpr("(?)", s.db.NewSelect().Table("accounts").ColumnExpr("count(*)")).
		ColumnExpr("keys.active, keys.expiring").
		ColumnExpr("?", size).
		ColumnExpr("(?)", s.db.NewSelect().Table("last_backup").Column("began_at")).
		// Without a condition SQLite reads the table in its order, which is faster than by
		// an index.
		TableExpr("(?) AS keys", s.db.NewSelect().Table("api_keys").
			ColumnExpr(active+") AS active", now).
			ColumnExpr(active+" AND expires_at <= ?) AS expiring", now, now.Add(7*value.Day))).
		Scan(ctx, &f.Accounts, &f.ActiveKeys, &f.ExpiringKeys, &f.DatabaseSize, &backup)
	if err != nil {
		return Figures{}, value.Failed("read the figures", err)
	}
	f.LastBackup = backup.Time
	if db.IsPostgres(s.db) {
		before := s.db.Now()
		database, err := db.PostgresNow(ctx, s.db)
		if err != nil {
			return Figures{}, value.Failed("read the time of the database", err)
		}
		// On average, the database answers in the middle.
		f.ClockAhead = before.Add(s.db.Now().Sub(before) / 2).Sub(database)
	}
	return f, nil
}

// Waiting counts what waits in a queue of all instances.
type Waiting struct {
	Count int64
	Since time.Time // of the oldest; zero: none waits
}

// Backlog is what goes on, waits or fails now, for operators. Nothing in it is read from a table
// that grows.
type Backlog struct {
	OpenCalls  int64
	Mails      Waiting
	Deliveries Waiting // of webhooks
	// Failing are the enabled endpoints of webhooks whose last attempts failed.
	Failing Waiting
}

// Backlog reads the backlog. The error may be [value.ErrUnavailable].
func (s *Store) Backlog(ctx context.Context) (b Backlog, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout)
	defer cancel()
	// Two aggregates read the index with the condition. The minimum alone could be searched in
	// the index of all rows.
	count := func(table, column string) *bun.SelectQuery {
		return s.db.NewSelect().Table(table).ColumnExpr("count(*), min(?)", bun.Ident(column))
	}
	for _, queue := range []struct {
		into  *Waiting
		query *bun.SelectQuery
	}{
		{&b.Mails, count("outbox", "created_at")},
		{&b.Deliveries, count("webhook_deliveries", "created_at").Where("due_at IS NOT NULL")},
		{&b.Failing, count("webhook_endpoints", "failing_since").Where("failing_since IS NOT NULL AND disabled_at IS NULL")},
	} {
		var since bun.NullTime
		if err := queue.query.Scan(ctx, &queue.into.Count, &since); err != nil {
			return Backlog{}, value.Failed("read the backlog", err)
		}
		queue.into.Since = since.Time
	}
	b.OpenCalls, err = s.Calls.CountOpen(ctx)
	return b, err
}
