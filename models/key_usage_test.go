package models_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/value"
)

func TestUsageByDayOfActiveKeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		key, secret := f.key(t, c)
		second, secondSecret := f.key(t, c)
		revoked, revokedSecret := f.key(t, c)
		unused, _ := f.key(t, c)
		_, otherSecret := f.key(t, other)
		// Requests in the database: three days ago and, from another instance, today.
		f.briefly(t, models.Options{}, func(s *models.Store) {
			use(t, s, secret, 3)
			use(t, s, otherSecret, 1)
		})
		f.clock.Advance(3 * value.Day)
		f.briefly(t, models.Options{}, func(s *models.Store) { use(t, s, secret, 2) })
		f.clock.Advance(time.Second) // a report tells instances apart by their last use
		// Requests today, in memory or just written.
		use(t, f.Store, secret, 5)
		use(t, f.Store, secondSecret, 1)
		use(t, f.Store, revokedSecret, 1)
		f.revoke(t, revoked)
		refuse(t, f.Store, revokedSecret, 4)
		daily := func(days int) map[uuid.UUID][]int64 {
			t.Helper()
			keys := modelstest.Value(f.Keys.ActiveUsage(ctx, c.ID, models.Days(days)))(t)
			requests, active := map[uuid.UUID][]int64{}, []uuid.UUID{}
			for _, key := range keys {
				active, requests[key.ID] = append(active, key.ID), key.Requests
			}
			if !slices.Equal(active, []uuid.UUID{unused.ID, second.ID, key.ID}) {
				t.Errorf("keys %v", active)
			}
			return requests
		}
		for days, want := range map[int]map[uuid.UUID][]int64{
			1: {key.ID: {7}, second.ID: {1}, unused.ID: {0}},
			3: {key.ID: {0, 0, 7}, second.ID: {0, 0, 1}, unused.ID: {0, 0, 0}},
			4: {key.ID: {3, 0, 0, 7}, second.ID: {0, 0, 0, 1}, unused.ID: {0, 0, 0, 0}},
			5: {key.ID: {0, 3, 0, 0, 7}, second.ID: {0, 0, 0, 0, 1}, unused.ID: {0, 0, 0, 0, 0}},
		} {
			if report := daily(days); !maps.EqualFunc(report, want, slices.Equal) {
				t.Errorf("%d days: %v, want %v", days, report, want)
			}
		}
		f.clock.Advance(value.Day)
		if report := daily(2); !slices.Equal(report[key.ID], []int64{7, 0}) {
			t.Errorf("a day later: %v", report)
		}
	})
}

func TestUsageByHour(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		key, secret := f.key(t, c)
		unused, _ := f.key(t, c)
		revoked, revokedSecret := f.key(t, c)
		foreign, foreignSecret := f.key(t, other)
		if report, err := f.Keys.Usage(ctx, c.ID, models.Hours(24)); err != nil || len(report) != 0 {
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
		f.clock.Advance(time.Second) // a report tells instances apart by their last use
		use(t, f.Store, secret, 5)   // in memory or just written
		refuse(t, f.Store, revokedSecret, 1)
		for hours, want := range map[int]map[uuid.UUID]string{
			1: {key.ID: "[7] [0]", unused.ID: "[0] [0]", revoked.ID: "[0] [1]"},
			3: {key.ID: "[3 0 7] [0 0 0]", unused.ID: "[0 0 0] [0 0 0]", revoked.ID: "[1 0 0] [4 0 1]"},
			4: {key.ID: "[0 3 0 7] [0 0 0 0]", unused.ID: "[0 0 0 0] [0 0 0 0]", revoked.ID: "[0 1 0 0] [0 4 0 1]"},
		} {
			report := modelstest.Value(f.Keys.Usage(ctx, c.ID, models.Hours(hours), key.ID, unused.ID, revoked.ID, foreign.ID, newID()))(t)
			got := map[uuid.UUID]string{}
			for id, usage := range report {
				got[id] = fmt.Sprint(usage.Requests, usage.Refusals)
			}
			if !maps.Equal(got, want) {
				t.Errorf("%d hours: %v, want %v", hours, got, want)
			}
		}
		f.clock.Advance(time.Hour)
		report := modelstest.Value(f.Keys.Usage(ctx, c.ID, models.Hours(3), key.ID, revoked.ID))(t)
		if requests, _ := report[key.ID].Total(); requests != 7 || !slices.Equal(report[key.ID].Requests, []int64{0, 7, 0}) {
			t.Errorf("an hour later: %v, in all %d", report, requests)
		}
		if requests, refusals := report[revoked.ID].Total(); requests != 0 || refusals != 1 {
			t.Errorf("the revoked key, an hour later: %d requests, %d refusals", requests, refusals)
		}
	})
}

// Usage of the account has every key that can have requests in the span: one that was revoked
// before it has them too, while clients still send it.
func TestUsageOfAnAccountHasItsRevokedKeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		f.key(t, other)
		key, secret := f.key(t, c)
		forgotten, _ := f.key(t, c)
		revoked, revokedSecret := f.key(t, c)
		use(t, f.Store, revokedSecret, 2)
		f.revoke(t, forgotten)
		f.revoke(t, revoked)
		began := f.clock.Now()
		f.clock.Advance(10 * value.Day)
		lately, _ := f.key(t, c)
		f.revoke(t, lately)
		use(t, f.Store, secret, 3)
		f.briefly(t, models.Options{}, func(s *models.Store) { refuse(t, s, revokedSecret, 4) })
		// An instance that could not write for long does so now.
		f.briefly(t, models.Options{Now: func() time.Time { return began }}, func(s *models.Store) { refuse(t, s, revokedSecret, 1) })
		for span, want := range map[models.UsageSpan]map[uuid.UUID]string{
			models.Hours(24): {key.ID: "3 0", lately.ID: "0 0", revoked.ID: "0 4"},
			models.Days(7):   {key.ID: "3 0", lately.ID: "0 0", revoked.ID: "0 4"},
			models.Days(30):  {key.ID: "3 0", lately.ID: "0 0", revoked.ID: "2 5", forgotten.ID: "0 0"},
		} {
			report := modelstest.Value(f.Keys.AccountUsage(ctx, c.ID, span))(t)
			got := map[uuid.UUID]string{}
			for _, usage := range report {
				requests, refusals := usage.Total()
				got[usage.ID] = fmt.Sprint(requests, refusals)
			}
			if !maps.Equal(got, want) {
				t.Errorf("%v: %v, want %v", span, got, want)
			}
			if report[0].ID != key.ID {
				t.Errorf("%v: the active key is not first", span)
			}
			requests, refusals := models.SumUsage(report).Total()
			wantRequests, wantRefusals := int64(3), int64(4)
			if span == models.Days(30) {
				wantRequests, wantRefusals = 5, 5
			}
			if requests != wantRequests || refusals != wantRefusals {
				t.Errorf("%v: %d requests and %d refusals in all", span, requests, refusals)
			}
		}
	})
}
