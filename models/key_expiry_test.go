package models_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"portal/models"
)

func TestExpiryIsAnnouncedTwiceToOwnersAndTheCreator(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.inRealTime()
		f.Store = f.open(t, models.Options{Mail: true})
		ctx, c := t.Context(), f.customer(t)
		stores := []*models.Store{f.Store, f.open(t, models.Options{Mail: true})}
		creator := f.member(t, c, models.RoleMember)
		f.member(t, c, models.RoleMember)
		start := f.clock.Now()
		generate := func(label string, life time.Duration, by models.Actor) models.Key {
			n := form(label)
			n.Restrictions.ExpiresAt = f.in(life)
			key, _, err := f.Keys.Generate(ctx, c.ID, n, by)
			must(t, err)
			return key
		}
		// expect looks for keys to announce on both instances, and compares the mails.
		expect := func(step string, want ...string) {
			t.Helper()
			_, errs := atOnce(4, func(i int) error { return stores[i%2].Keys.WarnOfExpiry(ctx) })
			var got []string
			for mail, _, err := f.Outbox.Claim(ctx); !errors.Is(err, models.ErrNoMail); mail, _, err = f.Outbox.Claim(ctx) {
				must(t, err)
				must(t, f.Outbox.Sent(ctx, mail))
				if mail.Kind == models.MailKeysExpiring {
					labels := []string{map[string]string{c.user.Email: "owner", creator.Email: "creator"}[mail.Recipient]}
					for _, key := range mail.Keys {
						labels = append(labels, key.Label)
					}
					got = append(got, strings.Join(labels, " "))
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) || len(errs) > 0 {
				t.Errorf("%s: mails %q, want %q; errors %v", step, got, want, errs)
			}
		}
		at := func(d time.Duration) { f.clock.Advance(start.Add(d).Sub(f.clock.Now())) }

		generate("first", 30*models.Day, models.UserActor(creator.ID, ""))
		generate("second", 30*models.Day+30*time.Minute, c.actor)
		revoked := generate("revoked", 30*models.Day, c.actor)
		edited := generate("edited", 40*models.Day, c.actor)
		f.key(t, c)
		f.revoke(t, revoked)
		at(22 * models.Day)
		expect("8 days before")
		at(23 * models.Day)
		expect("7 days before", "creator first", "owner first second")
		at(28 * models.Day)
		expect("2 days before")
		must(t, errOf(f.Keys.Restrict(ctx, c.ID, edited.ID, models.Restrictions{ExpiresAt: f.in(6 * models.Day)}, "", c.actor)))
		expect("an earlier expiry", "owner edited")
		at(29 * models.Day)
		expect("1 day before", "creator first", "owner first second")
		f.clock.Advance(time.Second)
		must(t, errOf(f.Keys.Restrict(ctx, c.ID, edited.ID, models.Restrictions{ExpiresAt: f.in(4 * models.Day)}, "", c.actor)))
		expect("another expiry", "owner edited")
		at(31 * models.Day)
		expect("after the expiry")
		brief := generate("brief", time.Hour, c.actor)
		must(t, f.Keys.WarnOfExpiry(ctx))
		f.revoke(t, brief)
		expect("revoked before the mail is sent")
		generate("brief", time.Hour, c.actor)
		expect("a short life", "owner brief")
		at(32*models.Day + time.Minute)
		expect("1 day before the other expiry", "owner edited")
	})
}
