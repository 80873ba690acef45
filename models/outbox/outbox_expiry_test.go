package outbox_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// expiryMails sends all mails and returns those about keys that expire.
func expiryMails(t *testing.T, f *fixture) (mails []record.Mail) {
	t.Helper()
	for {
		mail, _, err := f.Outbox.Claim(t.Context())
		if errors.Is(err, value.ErrNoMail) {
			return mails
		}
		must(t, err)
		must(t, f.Outbox.Sent(t.Context(), mail))
		if mail.Kind == record.MailKeysExpiring {
			mails = append(mails, mail)
		}
	}
}

func TestExpiryIsAnnouncedTwiceToOwnersAndTheCreator(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		f.Store = f.Open(t, models.Options{Mail: true})
		ctx, c := t.Context(), f.Customer(t)
		stores := []*models.Store{f.Store, f.Open(t, models.Options{Mail: true})}
		creator := f.Member(t, c, people.RoleMember)
		f.Member(t, c, people.RoleMember)
		start := f.Clock.Now()
		generate := func(label string, life time.Duration, by record.Actor) keys.Key {
			n := restricted(keys.Restrictions{ExpiresAt: f.In(life)})
			n.Label = label
			key, _ := f.Generate(t, c, n, by)
			return key
		}
		// expect looks for keys to announce on both instances, and compares the mails.
		expect := func(step string, want ...string) {
			t.Helper()
			_, errs := modelstest.AtOnce(4, func(i int) error { return stores[i%2].Outbox.WarnOfExpiry(ctx) })
			var got []string
			for _, mail := range expiryMails(t, f) {
				labels := []string{map[string]string{c.User.Email: "owner", creator.Email: "creator"}[mail.Recipient]}
				for _, key := range mail.Keys {
					labels = append(labels, key.Label)
				}
				got = append(got, strings.Join(labels, " "))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) || len(errs) > 0 {
				t.Errorf("%s: mails %q, want %q; errors %v", step, got, want, errs)
			}
		}
		at := func(d time.Duration) { f.Clock.Advance(start.Add(d).Sub(f.Clock.Now())) }

		generate("first", 30*value.Day, record.UserActor(creator.ID, ""))
		generate("second", 30*value.Day+30*time.Minute, c.Actor)
		revoked := generate("revoked", 30*value.Day, c.Actor)
		edited := generate("edited", 40*value.Day, c.Actor)
		f.Key(t, c)
		f.Revoke(t, revoked)
		at(22 * value.Day)
		expect("8 days before")
		at(23 * value.Day)
		expect("7 days before", "creator first", "owner first second")
		at(28 * value.Day)
		expect("2 days before")
		must(t, errOf(f.Keys.Restrict(ctx, c.ID, edited.ID, "", keys.Restrictions{ExpiresAt: f.In(6 * value.Day)}, "", c.Actor)))
		expect("an earlier expiry")
		at(29 * value.Day)
		expect("1 day before", "creator first", "owner first second")
		f.Clock.Advance(time.Second)
		must(t, errOf(f.Keys.Restrict(ctx, c.ID, edited.ID, "", keys.Restrictions{ExpiresAt: f.In(4 * value.Day)}, "", c.Actor)))
		expect("another expiry")
		at(31 * value.Day)
		expect("after the expiry")
		soon := generate("soon", 7*value.Day+time.Minute, c.Actor)
		must(t, f.Outbox.WarnOfExpiry(ctx))
		f.Revoke(t, soon)
		expect("revoked before the mail is sent")
		generate("a day", value.Day, c.Actor)
		generate("a week", 7*value.Day, c.Actor)
		expect("short lives")
		at(32*value.Day + time.Minute)
		expect("1 day before the other expiry", "owner edited")
		at(37 * value.Day)
		expect("1 day before the end of a week", "owner a week")
	})
}

func TestExpiryIsAnnouncedToThoseWhoCanAct(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		f.Store = f.Open(t, models.Options{Mail: true})
		ctx, c := t.Context(), f.Customer(t)
		creator := f.Member(t, c, people.RoleMember)
		generate := func(by record.Actor) {
			f.Generate(t, c, restricted(keys.Restrictions{ExpiresAt: f.In(7*value.Day + time.Minute)}), by)
			f.Clock.Advance(time.Minute)
		}
		expect := func(step string, want ...string) {
			t.Helper()
			must(t, f.Outbox.WarnOfExpiry(ctx))
			var got []string
			for _, mail := range expiryMails(t, f) {
				got = append(got, mail.Recipient)
			}
			slices.Sort(got)
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Errorf("%s: mails to %q, want %q", step, got, want)
			}
		}

		generate(record.UserActor(creator.ID, ""))
		must(t, f.Accounts.SetDisabled(ctx, c.ID, true, record.Operator()))
		expect("a disabled account")
		must(t, f.Accounts.SetDisabled(ctx, c.ID, false, record.Operator()))
		expect("an account enabled again", c.User.Email, creator.Email)
		generate(record.UserActor(creator.ID, ""))
		must(t, f.Outbox.WarnOfExpiry(ctx))
		must(t, f.People.SetDisabled(ctx, creator.Email, true))
		expect("a user disabled before the mail is sent", c.User.Email)
		for range 8 {
			generate(c.Actor)
			expect("below the limit", c.User.Email)
		}
		generate(c.Actor)
		expect("above the limit")
		f.Clock.Advance(time.Hour)
		expect("an hour later", c.User.Email)
		expect("after the mail")
	})
}
