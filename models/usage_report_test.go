package models_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
)

func TestAPIKeysWithUsage(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		key, secret := f.key(t, c)
		second, secondSecret := f.key(t, c)
		revoked, revokedSecret := f.key(t, c)
		f.key(t, c) // never used
		_, otherSecret := f.key(t, other)
		// Requests in the database: three days ago and, from another instance, today.
		f.briefly(t, models.Options{}, func(s *models.Store) {
			use(t, s, secret, 3)
			use(t, s, otherSecret, 1)
		})
		f.clock.Advance(3 * models.Day)
		f.briefly(t, models.Options{}, func(s *models.Store) { use(t, s, secret, 2) })
		// Requests today, in memory or just written.
		use(t, f.Store, secret, 5)
		use(t, f.Store, secondSecret, 1)
		use(t, f.Store, revokedSecret, 1)
		f.revoke(t, revoked)
		refuse(t, f.Store, revokedSecret, 4)
		for days, want := range map[int]map[uuid.UUID][]int64{
			1: {key.ID: {7}, second.ID: {1}},
			3: {key.ID: {0, 0, 7}, second.ID: {0, 0, 1}},
			4: {key.ID: {3, 0, 0, 7}, second.ID: {0, 0, 0, 1}},
			5: {key.ID: {0, 3, 0, 0, 7}, second.ID: {0, 0, 0, 0, 1}},
		} {
			_, report, err := f.Keys.ActiveWithUsage(ctx, c.ID, days)
			if err != nil || !maps.EqualFunc(report, want, slices.Equal) {
				t.Errorf("%d days: %v, want %v, %v", days, report, want, err)
			}
		}
		f.clock.Advance(models.Day)
		if _, report, err := f.Keys.ActiveWithUsage(ctx, c.ID, 2); err != nil || !slices.Equal(report[key.ID], []int64{7, 0}) {
			t.Errorf("a day later: %v, %v", report, err)
		}
	})
}

func TestHourlyRequests(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		key, secret := f.key(t, c)
		unused, _ := f.key(t, c)
		revoked, revokedSecret := f.key(t, c)
		foreign, foreignSecret := f.key(t, other)
		if report, err := f.Keys.HourlyRequests(ctx, c.ID, 24); err != nil || len(report) != 0 {
			t.Errorf("of no keys: %v, %v", report, err)
		}
		// Requests in the database: two hours ago and, from another instance, in this hour.
		f.briefly(t, models.Options{}, func(s *models.Store) {
			use(t, s, secret, 3)
			use(t, s, foreignSecret, 1)
			use(t, s, revokedSecret, 1)
			f.revoke(t, revoked)
			refuse(t, s, revokedSecret, 4)
		})
		f.clock.Advance(2 * time.Hour)
		f.briefly(t, models.Options{}, func(s *models.Store) { use(t, s, secret, 2) })
		use(t, f.Store, secret, 5) // in memory or just written
		for hours, want := range map[int]map[uuid.UUID][]int64{
			1: {key.ID: {7}},
			3: {key.ID: {3, 0, 7}, revoked.ID: {1, 0, 0}},
			4: {key.ID: {0, 3, 0, 7}, revoked.ID: {0, 1, 0, 0}},
		} {
			report, err := f.Keys.HourlyRequests(ctx, c.ID, hours, key.ID, unused.ID, revoked.ID, foreign.ID, newID())
			if err != nil || !maps.EqualFunc(report, want, slices.Equal) {
				t.Errorf("%d hours: %v, want %v, %v", hours, report, want, err)
			}
		}
		f.clock.Advance(time.Hour)
		if report, err := f.Keys.HourlyRequests(ctx, c.ID, 2, key.ID); err != nil || !slices.Equal(report[key.ID], []int64{7, 0}) {
			t.Errorf("an hour later: %v, %v", report, err)
		}
	})
}

func TestRecentUsage(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		key, secret := f.key(t, c)
		revoked, revokedSecret := f.key(t, c)
		unused, _ := f.key(t, c)
		foreign, foreignSecret := f.key(t, other)
		recent := func(when string, want map[uuid.UUID]models.RecentUsage) {
			t.Helper()
			report, err := f.Keys.RecentUsage(ctx, c.ID, key.ID, revoked.ID, unused.ID, foreign.ID, newID())
			if err != nil || !maps.Equal(report, want) {
				t.Errorf("%s: %v, want %v, %v", when, report, want, err)
			}
		}
		if report, err := f.Keys.RecentUsage(ctx, c.ID); err != nil || len(report) != 0 {
			t.Errorf("of no keys: %v, %v", report, err)
		}
		recent("at first", map[uuid.UUID]models.RecentUsage{})
		f.briefly(t, models.Options{}, func(s *models.Store) {
			use(t, s, secret, 3)
			use(t, s, foreignSecret, 1)
			use(t, s, revokedSecret, 1)
			f.revoke(t, revoked)
			refuse(t, s, revokedSecret, 4)
		})
		use(t, f.Store, secret, 2)
		refuse(t, f.Store, revokedSecret, 1)
		recent("now", map[uuid.UUID]models.RecentUsage{key.ID: {Requests: 5}, revoked.ID: {Requests: 1, Refusals: 5}})
		// Whole hours are counted, so 15:09 is in the last hour until 17:00.
		f.clock.Advance(110 * time.Minute)
		recent("at 16:59", map[uuid.UUID]models.RecentUsage{key.ID: {Requests: 5}, revoked.ID: {Requests: 1, Refusals: 5}})
		f.clock.Advance(time.Minute)
		recent("at 17:00", map[uuid.UUID]models.RecentUsage{key.ID: {Requests: 5}, revoked.ID: {Requests: 1}})
		f.clock.Advance(22*time.Hour + 50*time.Minute)
		recent("at 15:50 the next day", map[uuid.UUID]models.RecentUsage{key.ID: {Requests: 5}, revoked.ID: {Requests: 1}})
		f.clock.Advance(10 * time.Minute)
		recent("at 16:00 the next day", map[uuid.UUID]models.RecentUsage{})
	})
}

// A flush never makes a reported count or time go back.
func TestReportsCountEveryRequestDuringAFlush(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		key, secret := f.key(t, c)
		f.clock.Advance(time.Minute)
		use(t, f.Store, secret, 9)
		written := false
		eventually(t, "it is written", func() bool {
			_, daily, err := f.Keys.ActiveWithUsage(t.Context(), c.ID, 1)
			if err != nil || len(daily[key.ID]) != 1 || daily[key.ID][0] != 9 {
				t.Fatalf("daily requests %v, %v", daily, err)
			}
			recent, err := f.Keys.RecentUsage(t.Context(), c.ID, key.ID)
			if err != nil || recent[key.ID].Requests != 9 {
				t.Fatalf("recent usage %v, %v", recent, err)
			}
			found, err := f.Keys.Find(t.Context(), c.ID, key.ID)
			if err != nil || found.LastUsedAt == nil {
				t.Fatalf("%+v, %v", found, err)
			}
			was := written
			written = f.lastUse(t, key) != nil
			return was
		})
	})
}
