package keys_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// age moves what is stored about unused keys into the past, because the database's clock decides.
func (f *fixture) age(t *testing.T, key keys.Key, by time.Duration) {
	t.Helper()
	var created time.Time
	var check, since, ends *time.Time
	f.Scan(t, "SELECT created_at, check_at, since, ends_at FROM api_keys JOIN key_warnings ON api_key_id = id WHERE id = ?", []any{key.ID},
		&created, &check, &since, &ends)
	for _, at := range []*time.Time{&created, check, since, ends} {
		if at != nil {
			*at = at.Add(-by)
		}
	}
	f.Exec(t, "UPDATE api_keys SET created_at = ? WHERE id = ?", created, key.ID)
	f.Exec(t, "UPDATE key_warnings SET check_at = ?, since = ?, ends_at = ? WHERE api_key_id = ?", check, since, ends, key.ID)
}

// unusedMails sends all mails and returns those about unused keys, each as its recipient and the
// labels of the keys.
func (f *fixture) unusedMails(t *testing.T) (mails []string) {
	t.Helper()
	return f.claimUnused(t, f.Outbox.Sent)
}

// claimUnused is unusedMails, but calls done in place of sending.
func (f *fixture) claimUnused(t *testing.T, done func(context.Context, record.Mail) error) (mails []string) {
	t.Helper()
	for {
		mail, _, err := f.Outbox.Claim(t.Context())
		if errors.Is(err, value.ErrNoMail) {
			slices.Sort(mails)
			return mails
		}
		must(t, err)
		must(t, done(t.Context(), mail))
		if mail.Kind == record.MailKeysUnused {
			line := mail.Recipient
			for _, key := range mail.Keys {
				line += " " + key.Label
			}
			mails = append(mails, line)
		}
	}
}

// round looks for unused keys on several instances.
func unusedRound(t *testing.T, stores ...*models.Store) {
	t.Helper()
	_, errs := modelstest.AtOnce(2*len(stores), func(i int) error { return stores[i%len(stores)].Unused.Revoke(t.Context()) })
	if len(errs) > 0 {
		t.Errorf("errors %v", errs)
	}
}

// expectRevoked checks whether a key is revoked.
func (f *fixture) expectRevoked(t *testing.T, step string, key keys.Key, want bool) {
	t.Helper()
	found, err := f.Keys.Find(t.Context(), key.AccountID, key.ID)
	must(t, err)
	if (found.RevokedAt != nil) != want {
		t.Errorf("%s: key %q revoked: %t, want %t", step, key.Label, !want, want)
	}
}

func TestUnusedKeysAreRevokedAfterTwoMails(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		f.Store = f.Open(t, models.Options{Mail: true})
		c := f.Customer(t)
		creator := f.Member(t, c, people.RoleMember)
		stores := []*models.Store{f.Store, f.Open(t, models.Options{Mail: true})}
		must(t, f.Unused.SetLifetime(t.Context(), c.ID, 90*value.Day, c.Actor))
		unused, _ := f.Generate(t, c, keys.NewKey{Label: "unused", FormID: uuid.New()}, record.UserActor(creator.ID, ""))
		used, _ := f.Generate(t, c, keys.NewKey{Label: "used", FormID: uuid.New()}, c.Actor)
		f.unusedMails(t)
		expect := func(step string, revoked bool, want ...string) {
			t.Helper()
			unusedRound(t, stores...)
			for i := range want {
				want[i] = strings.NewReplacer("owner", c.User.Email, "creator", creator.Email).Replace(want[i])
			}
			slices.Sort(want)
			if got := f.unusedMails(t); !slices.Equal(got, want) {
				t.Errorf("%s: mails %q, want %q", step, got, want)
			}
			f.expectRevoked(t, step, unused, revoked)
			f.expectRevoked(t, step, used, false)
		}
		pass := func(d time.Duration) {
			f.age(t, unused, d)
			f.age(t, used, d)
			for _, store := range stores {
				store.Usage.Add(used, keys.Source{}, f.Clock.Now(), 1, 0)
			}
		}
		expect("at first", false)
		pass(75 * value.Day)
		expect("15 days before", false)
		pass(value.Day)
		expect("14 days before", false, "owner unused", "creator unused")
		pass(10 * value.Day)
		expect("4 days before", false)
		pass(value.Day + time.Minute) // the fixture's clock stands still
		expect("3 days before", false, "owner unused", "creator unused")
		pass(3 * value.Day)
		expect("in the margin", false)
		pass(2 * time.Hour)
		expect("at the end", true)

		revocations := f.Recorded(t, c, record.ActionKeyRevoked)
		if len(revocations) != 1 || revocations[0].ActorKind != record.ActorSystem || revocations[0].Detail != "Unused for 90 days" {
			t.Errorf("recorded %+v", revocations)
		}
	})
}

// A use between the mails, even one that only the memory of an instance has, starts anew. So does a
// new setting, also of the portal: no key is revoked within 14 days after that.
func TestWhatKeepsAnUnusedKey(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		c := f.Customer(t)
		key := modelstest.Errless(f.Key(t, c))
		round := func() { t.Helper(); unusedRound(t, f.Store) }
		set := func(after time.Duration) {
			t.Helper()
			must(t, f.Unused.SetLifetime(t.Context(), c.ID, after, c.Actor))
		}
		f.age(t, key, 400*value.Day)
		round()
		f.expectRevoked(t, "never", key, false)
		set(365 * value.Day)
		round()
		f.age(t, key, 13*value.Day)
		round()
		set(90 * value.Day)
		f.age(t, key, 2*time.Hour)
		round()
		f.age(t, key, 13*value.Day+23*time.Hour)
		round()
		f.expectRevoked(t, "within 14 days after a stricter setting", key, false)

		stricter := f.Open(t, models.Options{KeyUnusedLifetime: 30 * value.Day})
		f.age(t, key, 2*value.Day)
		unusedRound(t, stricter)
		f.expectRevoked(t, "a stricter portal", key, false)
		f.age(t, key, 14*value.Day+2*time.Hour)
		stricter.Usage.Add(key, keys.Source{}, f.Clock.Now(), 1, 0)
		unusedRound(t, stricter)
		f.expectRevoked(t, "a use that is not written", key, false)
	})
}

func TestUnusedKeysAreRevokedWithoutMail(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		c := f.Customer(t)
		key := modelstest.Errless(f.Key(t, c))
		store := f.Open(t, models.Options{KeyUnusedLifetime: 45 * value.Day})
		f.age(t, key, 60*value.Day)
		unusedRound(t, store)
		f.age(t, key, 14*value.Day)
		unusedRound(t, store)
		f.expectRevoked(t, "after 14 days", key, false)
		f.age(t, key, 2*time.Hour)

		// With mail, the mails come first, and a mail that waits holds the revocation back.
		mailing := f.Open(t, models.Options{Mail: true, KeyUnusedLifetime: 45 * value.Day})
		unusedRound(t, mailing)
		f.expectRevoked(t, "without the first mail", key, false)
		f.unusedMails(t)
		f.age(t, key, 20*value.Day)
		unusedRound(t, mailing)
		f.expectRevoked(t, "without the second mail", key, false)
		f.age(t, key, 4*value.Day)
		unusedRound(t, mailing)
		f.expectRevoked(t, "while the mail waits", key, false)
		f.unusedMails(t)
		f.age(t, key, 2*time.Hour)
		unusedRound(t, mailing)
		f.expectRevoked(t, "after both mails", key, true)
	})
}

// A mail that was given up does not count, unless another recipient has got it.
func TestUnusedKeysWaitForMailsThatArrive(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		f.Store = f.Open(t, models.Options{Mail: true})
		c := f.Customer(t)
		creator := f.Member(t, c, people.RoleMember)
		must(t, f.Unused.SetLifetime(t.Context(), c.ID, 30*value.Day, c.Actor))
		key, _ := f.Generate(t, c, keys.NewKey{Label: "unused", FormID: uuid.New()}, record.UserActor(creator.ID, ""))
		f.unusedMails(t)
		giveUp := func(ctx context.Context, mail record.Mail) error { return errOf(f.Outbox.Failed(ctx, mail, true)) }
		toOwner := func(ctx context.Context, mail record.Mail) error {
			if mail.Recipient == creator.Email {
				return giveUp(ctx, mail)
			}
			return f.Outbox.Sent(ctx, mail)
		}
		for _, step := range []struct {
			name  string
			after time.Duration
			mails int
			done  func(context.Context, record.Mail) error
		}{
			{"14 days before", 16 * value.Day, 2, giveUp},
			{"the first mail again", 11*value.Day + time.Minute, 2, toOwner},
			{"11 days after that", 11*value.Day + time.Minute, 2, giveUp},
			{"the second mail again", 3*value.Day + 2*time.Hour, 2, toOwner},
			{"3 days after that", 3*value.Day + 30*time.Minute, 0, giveUp},
		} {
			f.age(t, key, step.after)
			unusedRound(t, f.Store)
			f.expectRevoked(t, step.name, key, false)
			if mails := f.claimUnused(t, step.done); len(mails) != step.mails {
				t.Errorf("%s: mails %q", step.name, mails)
			}
		}
		f.age(t, key, time.Hour)
		unusedRound(t, f.Store)
		f.expectRevoked(t, "at the end", key, true)
	})
}

// No mail is about a key that is used every day, and no key is revoked within 14 days.
func TestShortLifetimeOfUnusedKeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		f.Store = f.Open(t, models.Options{Mail: true, KeyUnusedLifetime: value.Day})
		c := f.Customer(t)
		key := modelstest.Errless(f.Key(t, c))
		f.unusedMails(t)
		for _, step := range []struct {
			name  string
			after time.Duration
			mails int
		}{
			{"within a day", 23 * time.Hour, 0},
			{"after a day", 2 * time.Hour, 1},
			{"13 days later", 13 * value.Day, 1},
			{"16 days later", 3 * value.Day, 0},
		} {
			f.age(t, key, step.after)
			unusedRound(t, f.Store)
			f.expectRevoked(t, step.name, key, false)
			if mails := f.unusedMails(t); len(mails) != step.mails {
				t.Errorf("%s: mails %q", step.name, mails)
			}
		}
		f.age(t, key, 2*time.Hour)
		unusedRound(t, f.Store)
		f.expectRevoked(t, "after two mails", key, true)
	})
}

// A clock that runs ahead revokes nothing on PostgreSQL, whose clock decides. SQLite has none of
// its own.
func TestUnusedKeysAndAClockThatRunsAhead(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t), models.Options{})
	f.InRealTime()
	c := f.Customer(t)
	key := modelstest.Errless(f.Key(t, c))
	must(t, f.Unused.SetLifetime(t.Context(), c.ID, 30*value.Day, c.Actor))
	for range 3 {
		unusedRound(t, f.Store)
		f.Clock.Advance(100 * value.Day)
	}
	f.expectRevoked(t, "100 days ahead", key, false)
	f.CheckCount(t, 0, "SELECT count(*) FROM key_warnings WHERE since IS NOT NULL")
}

func TestUnusedLifetimeOfAnAccount(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		c := f.Customer(t)
		member := f.Member(t, c, people.RoleMember)
		store := f.Open(t, models.Options{KeyUnusedLifetime: 120 * value.Day})
		if got, want := store.Unused.Lifetimes(), []time.Duration{30 * value.Day, 90 * value.Day, 120 * value.Day}; !slices.Equal(got, want) {
			t.Errorf("choices %v, want %v", got, want)
		}
		for _, after := range []time.Duration{0, 180 * value.Day} {
			var invalid *value.InvalidError
			if err := store.Unused.SetLifetime(t.Context(), c.ID, after, c.Actor); !errors.As(err, &invalid) {
				t.Errorf("%v: error %v", after, err)
			}
		}
		if err := store.Unused.SetLifetime(t.Context(), c.ID, 30*value.Day, record.UserActor(member.ID, "")); !errors.Is(err, value.ErrNotOwner) {
			t.Errorf("a member: error %v", err)
		}
		for range 2 {
			must(t, store.Unused.SetLifetime(t.Context(), c.ID, 30*value.Day, c.Actor))
		}
		recorded := f.Recorded(t, c, record.ActionUnusedKeysSet)
		if len(recorded) != 1 || recorded[0].Detail != "After 120 days → After 30 days" {
			t.Errorf("recorded %+v", recorded)
		}
	})
}

// An account whose rows cannot be written holds up no other account.
func TestUnusedKeysOfAFailingAccountWait(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		f.Store = f.Open(t, models.Options{Mail: true})
		failing, other := f.Customer(t), f.Customer(t)
		for _, c := range []customer{failing, other} {
			must(t, f.Unused.SetLifetime(t.Context(), c.ID, 30*value.Day, c.Actor))
			key, _ := f.Key(t, c)
			f.age(t, key, 20*value.Day)
		}
		f.unusedMails(t)
		condition := "NEW.account_id = '" + failing.ID.String() + "'"
		create := "CREATE TRIGGER refuse BEFORE INSERT ON outbox WHEN " + condition + " BEGIN SELECT RAISE(ABORT, 'full'); END"
		if f.Postgres() {
			f.Exec(t, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'full'; END $$")
			create = "CREATE TRIGGER refuse BEFORE INSERT ON outbox FOR EACH ROW WHEN (" + condition + ") EXECUTE FUNCTION refuse()"
		}
		f.Exec(t, create)
		if err := f.Unused.Revoke(t.Context()); err == nil {
			t.Error("no error")
		}
		if mails := f.unusedMails(t); len(mails) != 1 || !strings.HasPrefix(mails[0], other.User.Email) {
			t.Errorf("mails %q", mails)
		}
		must(t, f.Unused.Revoke(t.Context())) // it is not due for an hour
		f.Exec(t, "DROP TRIGGER refuse"+map[bool]string{true: " ON outbox"}[f.Postgres()])
		f.Exec(t, "UPDATE key_warnings SET check_at = ? WHERE api_key_id IN (SELECT id FROM api_keys WHERE account_id = ?)", f.Clock.Now().Add(-time.Hour), failing.ID)
		must(t, f.Unused.Revoke(t.Context()))
		if mails := f.unusedMails(t); len(mails) != 1 || !strings.HasPrefix(mails[0], failing.User.Email) {
			t.Errorf("mails %q", mails)
		}
	})
}

// An instance of the previous version writes the lifetime and the columns of api_keys.
func TestLifetimeThatThePreviousVersionSets(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		c := f.Customer(t)
		key, _ := f.Key(t, c)
		unusedRound(t, f.Store) // the account has chosen never
		f.age(t, key, 100*value.Day)
		f.Exec(t, "UPDATE accounts SET unused_lifetime = ? WHERE id = ?", int64(30*value.Day), c.ID)
		unusedRound(t, f.Store)
		f.CheckCount(t, 1, "SELECT count(*) FROM key_warnings WHERE since IS NOT NULL")
		f.CheckCount(t, 1, "SELECT count(*) FROM api_keys WHERE unused_policy = -1")
	})
}
