package models

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// HourlyRequests returns, for each of these keys of the account, active or
// revoked, that was used, its accepted requests in each of the last hours (UTC),
// oldest first and the current one last, with those that this instance has not
// written yet. Hours are kept for two days, so no more than 48 are known. The
// error may be [ErrUnavailable].
func (s *Store) HourlyRequests(ctx context.Context, accountID uuid.UUID, hours int, keyIDs ...uuid.UUID) (map[uuid.UUID][]int64, error) {
	report := map[uuid.UUID][]int64{}
	if len(keyIDs) == 0 {
		return report, nil
	}
	s.usage.moving.RLock()
	defer s.usage.moving.RUnlock()
	first := s.clock().Truncate(time.Hour).Add(-time.Duration(hours-1) * time.Hour)
	var rows []struct {
		ID       uuid.UUID
		Hour     *time.Time // nil where nothing is stored
		Requests int64
	}
	err := s.db.NewSelect().Model((*APIKey)(nil)).
		ColumnExpr("api_key.id, hourly.hour, COALESCE(hourly.requests, 0) AS requests").
		Join("LEFT JOIN api_key_hourly_usage AS hourly ON hourly.api_key_id = api_key.id AND hourly.hour >= ?", first).
		Where("api_key.account_id = ? AND api_key.id IN (?)", accountID, bun.List(keyIDs)).Scan(ctx, &rows)
	if err != nil {
		return nil, failed("read usage by the hour", err)
	}
	add := func(keyID uuid.UUID, at time.Time, requests int64) {
		hour := int(at.Sub(first) / time.Hour)
		if requests == 0 || at.Before(first) || hour >= hours {
			return
		}
		if report[keyID] == nil {
			report[keyID] = make([]int64, hours)
		}
		report[keyID][hour] += requests
	}
	seen := map[uuid.UUID]bool{}
	for _, row := range rows {
		if row.Hour != nil {
			add(row.ID, *row.Hour, row.Requests)
		}
		if !seen[row.ID] {
			seen[row.ID] = true
			s.usage.each(row.ID, func(hour time.Time, n requestCounts) { add(row.ID, hour, n.requests) })
		}
	}
	return report, nil
}
