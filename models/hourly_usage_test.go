package models_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
)

func TestHourlyRequests(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		key, secret := f.key(t, c)
		unused, _ := f.key(t, c)
		revoked, revokedSecret := f.key(t, c)
		foreign, foreignSecret := f.key(t, other)
		if report, err := f.HourlyRequests(ctx, c.ID, 24); err != nil || len(report) != 0 {
			t.Errorf("of no keys: %v, %v", report, err)
		}
		// Stored: two hours ago and, by another instance, in this hour.
		f.briefly(t, models.Options{}, func(s *models.Store) {
			use(t, s, secret, 3)
			use(t, s, foreignSecret, 1)
			use(t, s, revokedSecret, 1)
			f.revoke(t, revoked)
			refuse(t, s, revokedSecret, 4)
		})
		f.clock.Advance(2 * time.Hour)
		f.briefly(t, models.Options{}, func(s *models.Store) { use(t, s, secret, 2) })
		use(t, f.Store, secret, 5) // in memory, or written just now
		for hours, want := range map[int]map[uuid.UUID][]int64{
			1: {key.ID: {7}},
			3: {key.ID: {3, 0, 7}, revoked.ID: {1, 0, 0}},
			4: {key.ID: {0, 3, 0, 7}, revoked.ID: {0, 1, 0, 0}},
		} {
			report, err := f.HourlyRequests(ctx, c.ID, hours, key.ID, unused.ID, revoked.ID, foreign.ID, newID())
			if err != nil || !maps.EqualFunc(report, want, slices.Equal) {
				t.Errorf("%d hours: %v, want %v, %v", hours, report, want, err)
			}
		}
		f.clock.Advance(time.Hour)
		if report, err := f.HourlyRequests(ctx, c.ID, 2, key.ID); err != nil || !slices.Equal(report[key.ID], []int64{7, 0}) {
			t.Errorf("an hour later: %v, %v", report, err)
		}
	})
}
