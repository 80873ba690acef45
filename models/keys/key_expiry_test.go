package keys_test

import (
	"slices"
	"testing"
	"time"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/value"
)

// The expiry of a key is recorded twice, once each, by any number of instances and without mail.
func TestExpiryIsRecordedOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		c := f.Customer(t)
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		generate := func(life time.Duration) keys.Key {
			key, _ := f.Generate(t, c, restricted(keys.Restrictions{ExpiresAt: f.In(life)}), c.Actor)
			return key
		}
		expect := func(step string, key keys.Key, want ...record.Action) {
			t.Helper()
			var got []record.Action
			for _, action := range []record.Action{record.ActionKeyExpiring, record.ActionKeyExpired} {
				for _, activity := range f.Recorded(t, c, action) {
					if *activity.SubjectID == key.ID {
						got = append(got, action)
					}
					if activity.ActorKind != record.ActorSystem || activity.Label == "" || activity.Detail == "" {
						t.Errorf("%s: recorded %+v", step, activity)
					}
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: recorded %q, want %q", step, got, want)
			}
		}
		round := func() {
			t.Helper()
			_, errs := modelstest.AtOnce(4, func(i int) error { return stores[i%2].Keys.RecordExpiry(t.Context()) })
			if len(errs) > 0 {
				t.Errorf("errors %v", errs)
			}
		}
		long, days, hours := generate(30*value.Day), generate(3*value.Day), generate(time.Hour)
		revoked, extended, free := generate(30*value.Day), generate(30*value.Day), modelstest.Errless(f.Key(t, c))
		round()
		for _, key := range []keys.Key{long, days, hours, revoked, extended, free} {
			expect("at first", key)
		}
		f.Clock.Advance(time.Hour + 10*time.Second)
		round()
		expect("after an hour", hours, record.ActionKeyExpired)
		expect("after an hour", days)
		f.Clock.Advance(2 * value.Day)
		round()
		expect("a day before", days, record.ActionKeyExpiring)
		f.Clock.Advance(22 * value.Day)
		round()
		expect("after the expiry", days, record.ActionKeyExpiring, record.ActionKeyExpired)
		expect("a week before", long, record.ActionKeyExpiring)
		expect("a week before", extended, record.ActionKeyExpiring)
		f.Revoke(t, revoked)
		f.Exec(t, "UPDATE api_keys SET expires_at = ?, expiry_recorded = 0 WHERE id = ?", f.Clock.Now().Add(20*value.Day), extended.ID)
		f.Clock.Advance(7 * value.Day)
		round()
		round()
		expect("at the end", long, record.ActionKeyExpiring, record.ActionKeyExpired)
		expect("at the end", revoked, record.ActionKeyExpiring)
		expect("at the end", extended, record.ActionKeyExpiring)
		expect("at the end", free)
		f.Clock.Advance(6 * value.Day)
		round()
		expect("with a later expiry", extended, record.ActionKeyExpiring, record.ActionKeyExpiring)
	})
}

// One round records so many at most, and the next one continues. The keys whose expiry is recorded
// are no work.
func TestManyKeysExpire(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		c := f.Customer(t)
		f.ManyKeys(t, c, 1010)
		f.Exec(t, "UPDATE api_keys SET expires_at = ?, lifetime = 1", f.Clock.Now().Add(-time.Minute))
		for _, want := range []int{1000, 1010, 1010} {
			must(t, f.Keys.RecordExpiry(t.Context()))
			f.CheckCount(t, want, "SELECT count(*) FROM activities WHERE action = 'api_key.expired'")
		}
	})
}
