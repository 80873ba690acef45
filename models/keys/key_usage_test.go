package keys_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/value"
)

func TestUsageByDayOfActiveKeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		key, secret := f.Key(t, c)
		second, secondSecret := f.Key(t, c)
		revoked, revokedSecret := f.Key(t, c)
		unused, _ := f.Key(t, c)
		_, otherSecret := f.Key(t, other)
		// Requests in the database: three days ago and, from another instance, today.
		f.Briefly(t, models.Options{}, func(s *models.Store) {
			modelstest.Use(t, s, secret, 3)
			modelstest.Use(t, s, otherSecret, 1)
		})
		f.Clock.Advance(3 * value.Day)
		f.Briefly(t, models.Options{}, func(s *models.Store) { modelstest.Use(t, s, secret, 2) })
		f.Clock.Advance(time.Second) // a report tells instances apart by their last use
		// Requests today, in memory or just written.
		modelstest.Use(t, f.Store, secret, 5)
		modelstest.Use(t, f.Store, secondSecret, 1)
		modelstest.Use(t, f.Store, revokedSecret, 1)
		f.Revoke(t, revoked)
		modelstest.Refuse(t, f.Store, revokedSecret, 4)
		daily := func(days int) map[uuid.UUID][]int64 {
			t.Helper()
			keys := modelstest.Value(f.Usage.OfList(ctx, c.ID, keys.Days(days), f.Clock.Now(), 1))(t).Active
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
		f.Clock.Advance(value.Day)
		if report := daily(2); !slices.Equal(report[key.ID], []int64{7, 0}) {
			t.Errorf("a day later: %v", report)
		}
	})
}

func TestUsageByHour(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		key, secret := f.Key(t, c)
		unused, _ := f.Key(t, c)
		revoked, revokedSecret := f.Key(t, c)
		foreign, foreignSecret := f.Key(t, other)
		if report, err := f.Usage.Of(ctx, c.ID, keys.Hours(24)); err != nil || len(report) != 0 {
			t.Errorf("of no keys: %v, %v", report, err)
		}
		// Requests in the database: two hours ago and, from another instance, in this hour.
		f.Briefly(t, models.Options{}, func(s *models.Store) {
			modelstest.Use(t, s, secret, 3)
			modelstest.Use(t, s, foreignSecret, 1)
			modelstest.Use(t, s, revokedSecret, 1)
			f.Revoke(t, revoked)
			modelstest.Refuse(t, s, revokedSecret, 4)
		})
		f.Clock.Advance(2 * time.Hour)
		f.Briefly(t, models.Options{}, func(s *models.Store) { modelstest.Use(t, s, secret, 2) })
		f.Clock.Advance(time.Second)          // a report tells instances apart by their last use
		modelstest.Use(t, f.Store, secret, 5) // in memory or just written
		modelstest.Refuse(t, f.Store, revokedSecret, 1)
		for hours, want := range map[int]map[uuid.UUID]string{
			1: {key.ID: "[7] [0]", unused.ID: "[0] [0]", revoked.ID: "[0] [1]"},
			3: {key.ID: "[3 0 7] [0 0 0]", unused.ID: "[0 0 0] [0 0 0]", revoked.ID: "[1 0 0] [4 0 1]"},
			4: {key.ID: "[0 3 0 7] [0 0 0 0]", unused.ID: "[0 0 0 0] [0 0 0 0]", revoked.ID: "[0 1 0 0] [0 4 0 1]"},
		} {
			report := modelstest.Value(f.Usage.Of(ctx, c.ID, keys.Hours(hours), key.ID, unused.ID, revoked.ID, foreign.ID, newID()))(t)
			got := map[uuid.UUID]string{}
			for id, usage := range report {
				got[id] = fmt.Sprint(usage.Requests, usage.Refusals)
			}
			if !maps.Equal(got, want) {
				t.Errorf("%d hours: %v, want %v", hours, got, want)
			}
		}
		f.Clock.Advance(time.Hour)
		report := modelstest.Value(f.Usage.Of(ctx, c.ID, keys.Hours(3), key.ID, revoked.ID))(t)
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
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		f.Key(t, other)
		key, secret := f.Key(t, c)
		forgotten, _ := f.Key(t, c)
		revoked, revokedSecret := f.Key(t, c)
		modelstest.Use(t, f.Store, revokedSecret, 2)
		f.Revoke(t, forgotten)
		f.Revoke(t, revoked)
		began := f.Clock.Now()
		f.Clock.Advance(10 * value.Day)
		lately, _ := f.Key(t, c)
		f.Revoke(t, lately)
		modelstest.Use(t, f.Store, secret, 3)
		f.Briefly(t, models.Options{}, func(s *models.Store) { modelstest.Refuse(t, s, revokedSecret, 4) })
		// An instance that could not write for long does so now.
		f.Briefly(t, models.Options{Now: func() time.Time { return began }}, func(s *models.Store) { modelstest.Refuse(t, s, revokedSecret, 1) })
		for span, want := range map[keys.UsageSpan]map[uuid.UUID]string{
			keys.Hours(24): {key.ID: "3 0", lately.ID: "0 0", revoked.ID: "0 4"},
			keys.Days(7):   {key.ID: "3 0", lately.ID: "0 0", revoked.ID: "0 4"},
			keys.Days(30):  {key.ID: "3 0", lately.ID: "0 0", revoked.ID: "2 5", forgotten.ID: "0 0"},
		} {
			report := modelstest.Value(f.Usage.OfAccount(ctx, c.ID, span))(t)
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
			requests, refusals := keys.SumUsage(report).Total()
			wantRequests, wantRefusals := int64(3), int64(4)
			if span == keys.Days(30) {
				wantRequests, wantRefusals = 5, 5
			}
			if requests != wantRequests || refusals != wantRefusals {
				t.Errorf("%v: %d requests and %d refusals in all", span, requests, refusals)
			}
		}
	})
}
