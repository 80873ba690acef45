package models

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// How long rows of usage are kept.
const (
	hourlyUsageKept = 48 * time.Hour
	dailyUsageKept  = 400 * Day
)

type lastUse struct {
	bun.BaseModel `bun:"table:api_key_last_uses"`

	APIKeyID uuid.UUID
	UsedAt   time.Time
}

type hourlyUsage struct {
	bun.BaseModel `bun:"table:api_key_hourly_usage"`

	APIKeyID uuid.UUID
	Hour     time.Time
	requestCounts
}

type dailyUsage struct {
	bun.BaseModel `bun:"table:api_key_daily_usage"`

	APIKeyID uuid.UUID
	Day      time.Time
	requestCounts
}

// writeUsage adds usage to the database in one transaction. Every instance locks rows in the same
// order, by table and then by key and period, so that concurrent flushes wait for each other and
// do not deadlock.
func (s *Store) writeUsage(ctx context.Context, usages map[uuid.UUID]*keyUsage) error {
	lasts, hours, days := usageRows(usages)
	return s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		err := inChunks(lasts, func(rows []lastUse) error {
			_, err := tx.NewInsert().Model(&rows).On("CONFLICT (api_key_id) DO UPDATE").
				Set("used_at = excluded.used_at").
				Where("last_use.used_at < excluded.used_at").Exec(ctx)
			return err
		})
		if err != nil {
			return err
		}
		err = inChunks(hours, func(rows []hourlyUsage) error { return addCounts(ctx, tx, &rows, "hour") })
		if err != nil {
			return err
		}
		return inChunks(days, func(rows []dailyUsage) error { return addCounts(ctx, tx, &rows, "day") })
	})
}

// usageRows returns the rows to write, sorted by key and period.
func usageRows(usages map[uuid.UUID]*keyUsage) (lasts []lastUse, hours []hourlyUsage, days []dailyUsage) {
	keyIDs := slices.SortedFunc(maps.Keys(usages), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	for _, keyID := range keyIDs {
		usage := usages[keyID]
		if !usage.last.IsZero() {
			lasts = append(lasts, lastUse{APIKeyID: keyID, UsedAt: usage.last})
		}
		for _, hour := range slices.SortedFunc(maps.Keys(usage.hours), time.Time.Compare) {
			n := usage.hours[hour]
			hours = append(hours, hourlyUsage{APIKeyID: keyID, Hour: hour, requestCounts: n})
			// One row a day: a statement cannot update the same row twice.
			day := hour.Truncate(Day)
			if end := len(days) - 1; end >= 0 && days[end].APIKeyID == keyID && days[end].Day.Equal(day) {
				days[end].add(n)
			} else {
				days = append(days, dailyUsage{APIKeyID: keyID, Day: day, requestCounts: n})
			}
		}
	}
	return lasts, hours, days
}

func addCounts(ctx context.Context, tx bun.Tx, rows any, period string) error {
	_, err := tx.NewInsert().Model(rows).On("CONFLICT (api_key_id, ?) DO UPDATE", bun.Ident(period)).
		Set("requests = ?TableAlias.requests + excluded.requests").
		Set("refusals = ?TableAlias.refusals + excluded.refusals").Exec(ctx)
	return err
}

// inChunks writes rows in statements that are small enough for every database.
func inChunks[T any](rows []T, write func([]T) error) error {
	for chunk := range slices.Chunk(rows, 1000) {
		if err := write(chunk); err != nil {
			return err
		}
	}
	return nil
}
