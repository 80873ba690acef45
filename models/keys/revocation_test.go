package keys_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/value"
)

func TestRevocation(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		key, _ := f.Key(t, c)
		other, otherSecret := f.Key(t, c)
		stranger := f.Customer(t)
		refused := func(when string, ids ...uuid.UUID) {
			t.Helper()
			for _, id := range ids {
				found, err := f.Keys.Revoke(ctx, stranger.ID, id, "", stranger.Actor)
				if !errors.Is(err, value.ErrKeyNotFound) || errors.Is(err, value.ErrKeyAlreadyRevoked) || found.ID != uuid.Nil {
					t.Errorf("%s: another account's: %+v, %v", when, found, err)
				}
			}
		}
		refused("while it is active", key.ID, newID(), uuid.Nil)
		f.Clock.Advance(time.Hour)
		revoked := modelstest.Value(f.Keys.Revoke(ctx, c.ID, key.ID, "", c.Actor))(t)
		if revoked.RevokedAt == nil {
			t.Fatalf("%+v", revoked)
		}
		modelstest.Facts(t, revoked, map[string]bool{
			"id":          revoked.ID == key.ID,
			"label":       revoked.Label == key.Label,
			"revoked now": revoked.RevokedAt.Equal(f.Clock.Now()),
		})
		refused("after its revocation", key.ID)
		if activities := f.Activities(t, stranger); len(activities) != 0 {
			t.Errorf("recorded %+v", activities)
		}
		at := *revoked.RevokedAt
		f.Clock.Advance(time.Hour)
		again, err := f.Keys.Revoke(ctx, c.ID, key.ID, "", c.Actor)
		checkError(t, "again", err, value.ErrKeyAlreadyRevoked)
		modelstest.Facts(t, again, map[string]bool{
			"id":         again.ID == key.ID,
			"label":      again.Label == key.Label,
			"revoked at": again.RevokedAt != nil && again.RevokedAt.Equal(at),
		})
		// The revoked key can still be read, and the other key is still active.
		if found, err := f.Keys.Find(ctx, c.ID, key.ID); err != nil || found.RevokedAt == nil {
			t.Errorf("found %+v, %v", found, err)
		}
		if keys, err := f.Keys.Active(ctx, c.ID); err != nil || len(keys) != 1 || keys[0].ID != other.ID {
			t.Errorf("still active: %+v, %v", keys, err)
		}
		checkError(t, "the other key", errOf(f.API.Authenticate(ctx, otherSecret, keys.Source{})), nil)
	})
}

func TestConcurrentRevocationsRevokeOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		key, _ := f.Key(t, c)
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		succeeded, errs := modelstest.AtOnce(8, func(i int) error {
			return errOf(stores[i%2].Keys.Revoke(t.Context(), c.ID, key.ID, "", c.Actor))
		})
		checkErrors(t, "a later revocation", errs, value.ErrKeyAlreadyRevoked)
		if recorded := len(f.Activities(t, c)); succeeded != 1 || recorded != 2 {
			t.Errorf("%d succeeded, %d activities recorded", succeeded, recorded)
		}
	})
}

// An action and its activity are one transaction: if the activity cannot be written, the action
// fails.
func TestActionFailsWithoutItsActivity(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		key, secret := f.Key(t, c)
		agent := f.Agent(t, c)
		session := f.SignedIn(t, c)
		f.Exec(t, "ALTER TABLE activities RENAME TO activities_away")
		for name, do := range map[string]func() error{
			"revoke":       func() error { return errOf(f.Keys.Revoke(ctx, c.ID, key.ID, "", c.Actor)) },
			"generate":     func() error { _, _, err := f.Keys.Generate(ctx, c.ID, form("x"), c.Actor); return err },
			"create agent": func() error { return errOf(f.Agents.Create(ctx, c.ID, agents.NewAgent{Name: "x"}, c.Actor)) },
			"remove agent": func() error { return errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.Actor)) },
			"sign in":      func() error { return errOf(f.SignIn.Start(ctx, c.User, people.Client{})) },
			"sign out":     func() error { return f.Sessions.End(ctx, c.ID, session.ID, c.Actor) },
		} {
			if err := do(); err == nil || errors.Is(err, value.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
		f.Exec(t, "ALTER TABLE activities_away RENAME TO activities")
		checkError(t, "the key after the failed revocation", errOf(f.API.Authenticate(ctx, secret, keys.Source{})), nil)
		for table, want := range map[string]int{"api_keys": 1, "agents": 1, "sessions": 1, "activities": 3} {
			f.CheckCount(t, want, "SELECT count(*) FROM "+table)
		}
	})
}

func TestRevokedAPIKeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		listed := func(after uuid.UUID, limit int) (ids []uuid.UUID, keys []keys.Key) {
			t.Helper()
			page := modelstest.Value(f.Keys.Revoked(ctx, c.ID, value.Page{After: after, Limit: limit}))(t)
			for _, key := range page.Items {
				ids = append(ids, key.ID)
			}
			return ids, page.Items
		}
		old, _ := f.Key(t, c)
		f.Revoke(t, old)
		f.Clock.Advance(keys.RevokedKeysKept / 2)
		f.Key(t, c) // an active one
		foreign, _ := f.Key(t, other)
		f.Revoke(t, foreign)
		leaked, secret := f.Key(t, c)
		modelstest.Use(t, f.Store, secret, 2)
		modelstest.Value(f.Keys.Revoke(ctx, c.ID, leaked.ID, "", c.Actor))(t)
		modelstest.Refuse(t, f.Store, secret, 3)
		f.Clock.Advance(value.Day)
		modelstest.Refuse(t, f.Store, secret, 4)

		ids, ofAccount := listed(uuid.Nil, 10)
		if !slices.Equal(ids, []uuid.UUID{leaked.ID, old.ID}) {
			t.Fatalf("listed: %v", ids)
		}
		if key := ofAccount[0]; key.RevokedBy != c.User.Email || key.RevokedAt == nil || key.LastUsedAt == nil {
			t.Errorf("%+v", key)
		}
		if key := ofAccount[1]; key.LastUsedAt != nil || key.Masked() != old.Masked() {
			t.Errorf("%+v", key)
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
		usage, err := f.Usage.Of(ctx, c.ID, keys.Days(3), ids...)
		if daily := usage[leaked.ID]; err != nil || !slices.Equal(daily.Requests, []int64{0, 2, 0}) || !slices.Equal(daily.Refusals, []int64{0, 3, 4}) {
			t.Errorf("usage: %v, %v", daily, err)
		}
		if usage, err := f.Usage.Of(ctx, other.ID, keys.Days(3), ids...); err != nil || len(usage) != 0 {
			t.Errorf("usage for another account: %v, %v", usage, err)
		}
		f.Clock.Advance(keys.RevokedKeysKept / 2)
		if ids, _ := listed(uuid.Nil, 10); !slices.Equal(ids, []uuid.UUID{leaked.ID}) {
			t.Errorf("after 90 days: %v", ids)
		}
	})
}
