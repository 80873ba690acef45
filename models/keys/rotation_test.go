package keys_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/value"
)

func (f *fixture) replace(t *testing.T, c customer, key keys.Key) keys.Key {
	t.Helper()
	made, _, err := f.Keys.Generate(t.Context(), c.ID,
		keys.NewKey{Label: key.Label, FormID: uuid.New(), Replaces: key.ID}, c.Actor)
	must(t, err)
	return made
}

func TestReplacement(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		key, secret := f.Key(t, c)
		if key.ReplacesID != nil {
			t.Errorf("replaces %s", key.ReplacesID)
		}
		replacement := func(when string, want uuid.UUID) {
			t.Helper()
			found, err := f.Keys.Replacement(ctx, c.ID, key.ID)
			if want == uuid.Nil {
				if !errors.Is(err, value.ErrKeyNotFound) {
					t.Errorf("%s: %+v, %v", when, found, err)
				}
				return
			}
			if err != nil || found.ID != want || found.ReplacesID == nil || *found.ReplacesID != key.ID {
				t.Errorf("%s: %+v, %v, want %s", when, found, err, want)
			}
		}
		replacement("without a replacement", uuid.Nil)
		first := f.replace(t, c, key)
		replacement("the first", first.ID)
		// The old key works until it is revoked.
		modelstest.Use(t, f.Store, secret, 1)
		second := f.replace(t, c, key)
		replacement("the newest of two", second.ID)
		f.replace(t, c, second)
		replacement("after it was replaced in turn", second.ID)
		f.Revoke(t, second)
		replacement("after the newest was revoked", first.ID)
		f.Revoke(t, key)
		replacement("of a revoked key", first.ID)
		f.Revoke(t, first)
		replacement("after both were revoked", uuid.Nil)
		if found, err := f.Keys.Replacement(ctx, other.ID, key.ID); !errors.Is(err, value.ErrKeyNotFound) || found.ID != uuid.Nil {
			t.Errorf("for another account: %+v, %v", found, err)
		}
		f.Exec(t, "DELETE FROM api_keys WHERE id = ?", key.ID)
		if found, err := f.Keys.FindAsOperator(ctx, first.ID); err != nil || (f.Postgres() && found.ReplacesID != nil) {
			t.Errorf("after the old key was deleted: %+v, %v", found, err)
		}
	})
}

func TestKeysThatCannotBeReplaced(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		revoked, _ := f.Key(t, c)
		f.Revoke(t, revoked)
		foreign, _ := f.Key(t, other)
		before := f.Count(t, "SELECT count(*) FROM api_keys")
		for name, test := range map[string]struct {
			id   uuid.UUID
			want error
		}{
			"revoked":           {revoked.ID, value.ErrKeyAlreadyRevoked},
			"another account's": {foreign.ID, value.ErrKeyNotFound},
			"an unknown":        {newID(), value.ErrKeyNotFound},
		} {
			n := keys.NewKey{Label: "new", FormID: uuid.New(), Replaces: test.id}
			key, secret, err := f.Keys.Generate(ctx, c.ID, n, c.Actor)
			if !errors.Is(err, test.want) || key.ID != uuid.Nil || secret != "" {
				t.Errorf("%s key: %+v, %v", name, key, err)
			}
			// The form has generated nothing, so it can be submitted again.
			n.Replaces = uuid.Nil
			if _, _, err := f.Keys.Generate(ctx, c.ID, n, c.Actor); err != nil {
				t.Errorf("%s key, without it: %v", name, err)
			}
		}
		if n := f.Count(t, "SELECT count(*) FROM api_keys"); n != before+3 {
			t.Errorf("%d keys generated, want 3", n-before)
		}
	})
}

func TestKeyIsRenamed(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		key, secret := f.Key(t, c)
		renamed, err := f.Keys.Rename(ctx, c.ID, key.ID, " staging ", c.Actor)
		if err != nil || renamed.ID != key.ID || renamed.Label != "staging" || renamed.RevokedAt != nil {
			t.Fatalf("%+v, %v", renamed, err)
		}
		if found, err := f.Keys.Find(ctx, c.ID, key.ID); err != nil || found.Label != "staging" {
			t.Errorf("%+v, %v", found, err)
		}
		modelstest.Use(t, f.Store, secret, 1)
		// Renaming a key to its current label records nothing.
		if again, err := f.Keys.Rename(ctx, c.ID, key.ID, "staging", c.Actor); err != nil || again.Label != "staging" {
			t.Errorf("again: %+v, %v", again, err)
		}
		for _, label := range []string{"", " ", "a\nb", "\xff"} {
			checkInvalid(t, label, errOf(f.Keys.Rename(ctx, c.ID, key.ID, label, c.Actor)), "label")
		}
		for name, id := range map[string]uuid.UUID{"another account's": key.ID, "no": newID()} {
			if found, err := f.Keys.Rename(ctx, other.ID, id, "mine", other.Actor); !errors.Is(err, value.ErrKeyNotFound) || found.ID != uuid.Nil {
				t.Errorf("%s key: %+v, %v", name, found, err)
			}
		}
		f.Revoke(t, key)
		if found, err := f.Keys.Rename(ctx, c.ID, key.ID, "late", c.Actor); !errors.Is(err, value.ErrKeyAlreadyRevoked) || found.Label != "staging" {
			t.Errorf("revoked: %+v, %v", found, err)
		}
		activities := f.Activities(t, c)
		if len(activities) != 3 || activities[1].Action != record.ActionKeyRenamed || activities[1].Label != "staging" || len(f.Activities(t, other)) != 0 {
			t.Errorf("recorded %+v", activities)
		}
	})
}
