package models_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// passkey adds a passkey to the user of a session and returns it as stored.
func (f *fixture) passkey(t *testing.T, session people.Session, actor record.Actor) people.Passkey {
	t.Helper()
	id := []byte(uuid.NewString())
	must(t, f.Credentials.AddPasskey(t.Context(), session, people.Passkey{CredentialID: id, Credential: "{}", SignCount: 1, Name: "Phone"}, uuid.NewString(), actor))
	return modelstest.Value(f.Credentials.FindPasskey(t.Context(), id))(t)
}

func TestPasskeySignsIn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		session := f.signedIn(t, c)
		foreign := f.signedIn(t, other)
		passkey := f.passkey(t, session, c.actor)
		use := func(count int64, challenge string) error {
			answered := passkey
			answered.SignCount = count
			return errOf(f.SignIn.WithPasskey(ctx, answered, challenge, browser))
		}
		must(t, use(2, "first"))
		checkError(t, "the same challenge", use(3, "first"), value.ErrChallengeUsed)
		checkError(t, "the same counter", use(2, "second"), value.ErrPasskeyNotFound)
		done, errs := atOnce(4, func(i int) error { return use(int64(10+i), "third") })
		if done != 1 {
			t.Errorf("%d answers to one challenge were accepted: %v", done, errs)
		}
		checkError(t, "another account's", f.Credentials.RemovePasskey(ctx, foreign, passkey.ID, other.actor), value.ErrPasskeyNotFound)
		taken := f.Credentials.AddPasskey(ctx, foreign, people.Passkey{CredentialID: passkey.CredentialID, Credential: "{}", Name: "Phone"}, "fourth", other.actor)
		checkError(t, "another user's passkey", taken, value.ErrPasskeyTaken)

		f.owner(t, c)
		must(t, f.People.SetDisabled(ctx, c.user.Email, true))
		checkError(t, "a disabled user", use(20, "fifth"), value.ErrSignInDisabled)
		must(t, f.People.SetDisabled(ctx, c.user.Email, false))
		must(t, f.Credentials.RemovePasskey(ctx, session, passkey.ID, c.actor))
		checkError(t, "removed", use(21, "sixth"), value.ErrPasskeyNotFound)
		for _, action := range []record.Action{record.ActionPasskeyAdded, record.ActionPasskeyRemoved} {
			if recorded := f.recorded(t, c, action); len(recorded) != 1 || recorded[0].Label != "Phone" {
				t.Errorf("%s: recorded %+v", action, recorded)
			}
		}
		f.clock.Advance(3 * people.ChallengeLife)
		must(t, f.Erasures.Purge(ctx))
		f.checkCount(t, 0, "SELECT count(*) FROM used_challenges")
	})
}

func TestLastRequiredFactorIsNotRemoved(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		session := f.signedIn(t, c)
		first, second := f.passkey(t, session, c.actor), f.passkey(t, session, c.actor)
		must(t, f.Accounts.RequireSecondFactor(ctx, c.ID, true, c.actor))
		passkeys := []people.Passkey{first, second}
		done, errs := atOnce(len(passkeys), func(i int) error {
			return f.Credentials.RemovePasskey(ctx, session, passkeys[i].ID, c.actor)
		})
		if done != 1 || !slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, value.ErrLastFactor) }) {
			t.Errorf("%d of two passkeys were removed: %v", done, errs)
		}
		a := app{f: f, secret: modelstest.Value(f.Credentials.StartTOTP(ctx, session))(t)}
		modelstest.Value(f.Credentials.EnableTOTP(ctx, session, a.code(t, 0), c.actor))(t)
		left := modelstest.Value(f.Credentials.Passkeys(ctx, session))(t)
		must(t, f.Credentials.RemovePasskey(ctx, session, left[0].ID, c.actor))
		checkError(t, "the app", f.Credentials.DisableTOTP(ctx, session, c.actor), value.ErrLastFactor)
		must(t, f.Accounts.RequireSecondFactor(ctx, c.ID, false, c.actor))
		must(t, f.Credentials.DisableTOTP(ctx, session, c.actor))
	})
}

func TestUserHasTenPasskeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		session := f.signedIn(t, c)
		done, errs := atOnce(12, func(i int) error {
			passkey := people.Passkey{CredentialID: fmt.Append(nil, i), Credential: "{}", Name: "Phone"}
			return f.Credentials.AddPasskey(t.Context(), session, passkey, uuid.NewString(), c.actor)
		})
		if done != value.MaxPasskeys {
			t.Errorf("%d were added: %v", done, errs)
		}
		checkErrors(t, "one more", errs, value.ErrPasskeyLimit)
	})
}

func TestLastWayToSignInStays(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		c, token := f.newMember(t, f.customer(t))
		session := f.find(t, token)
		first, second := f.passkey(t, session, c.actor), f.passkey(t, session, c.actor)
		must(t, f.Credentials.RemovePasskey(ctx, session, first.ID, c.actor))
		checkError(t, "the last passkey", f.Credentials.RemovePasskey(ctx, session, second.ID, c.actor), value.ErrOnlySignIn)
		if _, err := f.Credentials.FindPasskey(ctx, second.CredentialID); err != nil {
			t.Errorf("it is gone: %v", err)
		}
	})
}

func TestSecondFactorIsRequired(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, owner := t.Context(), f.customer(t)
		member, token := f.newMember(t, owner)
		checkError(t, "by a member", f.Accounts.RequireSecondFactor(ctx, owner.ID, true, member.actor), value.ErrNotOwner)
		checkError(t, "by another account's owner", f.Accounts.RequireSecondFactor(ctx, owner.ID, true, f.customer(t).actor), value.ErrNotOwner)
		due := func(want bool) people.Session {
			t.Helper()
			session, err := f.Sessions.Find(ctx, token, browser)
			if err != nil || session.FactorDue != want {
				t.Errorf("due %t, %v, want %t", session.FactorDue, err, want)
			}
			return session
		}
		due(false)
		checkError(t, "by an owner without one", f.Accounts.RequireSecondFactor(ctx, owner.ID, true, owner.actor), value.ErrNoFactor)
		f.passkey(t, f.signedIn(t, owner), owner.actor)
		if people, without, err := f.Accounts.CountFactors(ctx, owner.ID); err != nil || people != 2 || without != 1 {
			t.Errorf("%d people, %d without a factor, %v", people, without, err)
		}
		for range 2 {
			must(t, f.Accounts.RequireSecondFactor(ctx, owner.ID, true, owner.actor))
		}
		session := due(true)
		f.passkey(t, session, member.actor)
		due(false)
		// A password alone would get around the passkey.
		must(t, errOf(f.Credentials.ChangePassword(ctx, session, "", newPassword, member.actor)))
		user := modelstest.Value(f.SignIn.VerifyPassword(ctx, member.user.Email, newPassword, browser))(t)
		if signedIn, err := f.SignIn.Start(ctx, user, browser); err != nil || !signedIn.Pending {
			t.Errorf("pending %t, %v", signedIn.Pending, err)
		}
		must(t, f.Accounts.RequireSecondFactor(ctx, owner.ID, false, owner.actor))
		if signedIn, err := f.SignIn.Start(ctx, user, browser); err != nil || signedIn.Pending {
			t.Errorf("pending %t, %v", signedIn.Pending, err)
		}
		for _, action := range []record.Action{record.ActionSecondFactorRequired, record.ActionSecondFactorOptional} {
			if recorded := f.recorded(t, owner, action); len(recorded) != 1 {
				t.Errorf("%s: recorded %+v", action, recorded)
			}
		}
	})
}

func TestOperatorResetsSecondFactors(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		factors := func(app, passkey bool) {
			t.Helper()
			users, err := f.People.List(ctx, c.ID, value.Page{Limit: 1})
			if must(t, err); users.Items[0].HasApp != app || users.Items[0].HasPasskey != passkey {
				t.Errorf("want app %t, passkey %t: %+v", app, passkey, users.Items[0])
			}
		}
		f.twoSteps(t, c)
		token := f.linkSession(t, c)
		session := f.find(t, token)
		factors(true, false)
		passkey := f.passkey(t, session, c.actor)
		factors(true, true)
		must(t, f.Credentials.ResetSecondFactor(ctx, c.user.AccountID, c.user.ID))
		factors(false, false)
		checkError(t, "a session", errOf(f.Sessions.Find(ctx, token, browser)), value.ErrSessionNotFound)
		checkError(t, "the passkey", errOf(f.Credentials.FindPasskey(ctx, passkey.CredentialID)), value.ErrPasskeyNotFound)
		if signedIn, err := f.SignIn.Start(ctx, c.user, browser); err != nil || signedIn.Pending {
			t.Errorf("pending %t, %v", signedIn.Pending, err)
		}
		f.checkCount(t, 0, "SELECT count(*) FROM recovery_codes")
		if recorded := f.recorded(t, c, record.ActionSecondFactorReset); len(recorded) != 1 || recorded[0].ActorName != "Operator" {
			t.Errorf("recorded %+v", recorded)
		}
		checkError(t, "nobody", f.Credentials.ResetSecondFactor(ctx, c.user.AccountID, uuid.New()), value.ErrUserNotFound)
	})
}

func TestConcurrentConnectionsOfOneIdentity(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		session := f.signedIn(t, c)
		subjects := []string{"ada", "ada", "eve", "eve"}
		_, errs := atOnce(len(subjects), func(i int) error {
			identity := people.Identity{Issuer: "https://a.example", Subject: subjects[i]}
			return f.Credentials.ConnectIdentity(t.Context(), session, identity, "Example", c.actor)
		})
		taken := 0
		for _, err := range errs {
			if !errors.Is(err, value.ErrIdentityTaken) {
				t.Error(err)
			}
			taken++
		}
		if taken != 2 {
			t.Errorf("%d of four connections were refused, want 2", taken)
		}
		activities, err := f.Activity.List(t.Context(), c.ID, record.ActivityPage{Limit: 100, Actions: []record.Action{record.ActionIdentityConnected}})
		if err != nil || len(activities) != 1 {
			t.Errorf("%d activities, %v", len(activities), err)
		}
	})
}
