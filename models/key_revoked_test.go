package models_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
)

func TestRevokedAPIKeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		listed := func(after uuid.UUID, limit int) (ids []uuid.UUID, keys []models.RevokedKey) {
			t.Helper()
			page := modelstest.Value(f.Keys.Revoked(ctx, c.ID, models.Page{After: after, Limit: limit}))(t)
			for _, key := range page.Items {
				ids = append(ids, key.ID)
			}
			return ids, page.Items
		}
		old, _ := f.key(t, c)
		f.revoke(t, old)
		f.clock.Advance(models.RevokedKeysKept / 2)
		active, _ := f.key(t, c)
		foreign, _ := f.key(t, other)
		f.revoke(t, foreign)
		leaked, secret := f.key(t, c)
		use(t, f.Store, secret, 2)
		modelstest.Value(f.Keys.Revoke(ctx, c.ID, leaked.ID, c.actor))(t)
		refuse(t, f.Store, secret, 3)
		f.clock.Advance(models.Day)
		refuse(t, f.Store, secret, 4)

		ids, keys := listed(uuid.Nil, 10)
		if !slices.Equal(ids, []uuid.UUID{leaked.ID, old.ID}) {
			t.Fatalf("listed: %v", ids)
		}
		if key := keys[0]; key.RevokedBy != c.user.Email || key.RevokedAt == nil || key.LastUsedAt == nil {
			t.Errorf("%+v", key)
		}
		if key := keys[1]; key.LastUsedAt != nil || key.Masked() != old.Masked() {
			t.Errorf("%+v", key)
		}
		for limit, want := range map[int][]uuid.UUID{1: {active.ID, leaked.ID}, 10: {active.ID, leaked.ID, old.ID}} {
			names := modelstest.Value(f.Keys.Names(ctx, c.ID, limit))(t)
			var named []uuid.UUID
			for _, name := range names {
				named = append(named, name.ID)
			}
			if !slices.Equal(named, want) {
				t.Errorf("names of at most %d revoked keys: %v, want %v", limit, named, want)
			}
		}
		if ids, _ := listed(uuid.Nil, 1); !slices.Equal(ids, []uuid.UUID{leaked.ID}) {
			t.Errorf("first page: %v", ids)
		}
		if ids, _ := listed(leaked.ID, 1); !slices.Equal(ids, []uuid.UUID{old.ID}) {
			t.Errorf("second page: %v", ids)
		}
		if ids, _ := listed(foreign.ID, 1); len(ids) != 0 {
			t.Errorf("after another account's key: %v", ids)
		}
		usage, err := f.Keys.Usage(ctx, c.ID, models.Days(3), ids...)
		if daily := usage[leaked.ID]; err != nil || !slices.Equal(daily.Requests, []int64{0, 2, 0}) || !slices.Equal(daily.Refusals, []int64{0, 3, 4}) {
			t.Errorf("usage: %v, %v", daily, err)
		}
		if usage, err := f.Keys.Usage(ctx, other.ID, models.Days(3), ids...); err != nil || len(usage) != 0 {
			t.Errorf("usage for another account: %v, %v", usage, err)
		}
		f.clock.Advance(models.RevokedKeysKept / 2)
		if ids, _ := listed(uuid.Nil, 10); !slices.Equal(ids, []uuid.UUID{leaked.ID}) {
			t.Errorf("after 90 days: %v", ids)
		}
	})
}
