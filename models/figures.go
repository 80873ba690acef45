package models

import (
	"context"
	"time"

	"github.com/uptrace/bun"
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

// Figures reads the figures. The error may be [ErrUnavailable].
func (s *Store) Figures(ctx context.Context) (f Figures, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.timeout)
	defer cancel()
	size := bun.Safe("(SELECT page_count * page_size FROM pragma_page_count, pragma_page_size)")
	if isPostgres(s.db) {
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
			ColumnExpr(active+" AND expires_at <= ?) AS expiring", now, now.Add(7*Day))).
		Scan(ctx, &f.Accounts, &f.ActiveKeys, &f.ExpiringKeys, &f.DatabaseSize, &backup)
	if err != nil {
		return Figures{}, failed("read the figures", err)
	}
	f.LastBackup = backup.Time
	if isPostgres(s.db) {
		before := s.db.Now()
		database, err := postgresNow(ctx, s.db)
		if err != nil {
			return Figures{}, failed("read the time of the database", err)
		}
		// On average, the database answers in the middle.
		f.ClockAhead = before.Add(s.db.Now().Sub(before) / 2).Sub(database)
	}
	return f, nil
}
