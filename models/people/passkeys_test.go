package people_test

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

func TestPasskeySignsIn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		session := f.SignedIn(t, c)
		foreign := f.SignedIn(t, other)
		passkey := f.Passkey(t, session, c.Actor)
		use := func(count int64, challenge string) error {
			answered := passkey
			answered.SignCount = count
			return errOf(f.SignIn.WithPasskey(ctx, answered, challenge, modelstest.Browser))
		}
		must(t, use(2, "first"))
		checkError(t, "the same challenge", use(3, "first"), value.ErrChallengeUsed)
		checkError(t, "the same counter", use(2, "second"), value.ErrPasskeyNotFound)
		done, errs := modelstest.AtOnce(4, func(i int) error { return use(int64(10+i), "third") })
		if done != 1 {
			t.Errorf("%d answers to one challenge were accepted: %v", done, errs)
		}
		checkError(t, "another account's", f.Credentials.RemovePasskey(ctx, foreign, passkey.ID, other.Actor), value.ErrPasskeyNotFound)
		taken := f.Credentials.AddPasskey(ctx, foreign, people.Passkey{CredentialID: passkey.CredentialID, Credential: "{}", Name: "Phone"}, "fourth", other.Actor)
		checkError(t, "another user's passkey", taken, value.ErrPasskeyTaken)

		f.Owner(t, c)
		must(t, f.People.SetDisabled(ctx, c.User.Email, true))
		checkError(t, "a disabled user", use(20, "fifth"), value.ErrSignInDisabled)
		must(t, f.People.SetDisabled(ctx, c.User.Email, false))
		must(t, f.Credentials.RemovePasskey(ctx, session, passkey.ID, c.Actor))
		checkError(t, "removed", use(21, "sixth"), value.ErrPasskeyNotFound)
		for _, action := range []record.Action{record.ActionPasskeyAdded, record.ActionPasskeyRemoved} {
			if recorded := f.Recorded(t, c, action); len(recorded) != 1 || recorded[0].Label != "Phone" {
				t.Errorf("%s: recorded %+v", action, recorded)
			}
		}
		f.Clock.Advance(3 * people.ChallengeLife)
		must(t, f.Erasures.Purge(ctx))
		f.CheckCount(t, 0, "SELECT count(*) FROM used_challenges")
	})
}

func TestLastRequiredFactorIsNotRemoved(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		session := f.SignedIn(t, c)
		first, second := f.Passkey(t, session, c.Actor), f.Passkey(t, session, c.Actor)
		must(t, f.Accounts.RequireSecondFactor(ctx, c.ID, true, c.Actor))
		passkeys := []people.Passkey{first, second}
		done, errs := modelstest.AtOnce(len(passkeys), func(i int) error {
			return f.Credentials.RemovePasskey(ctx, session, passkeys[i].ID, c.Actor)
		})
		if done != 1 || !slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, value.ErrLastFactor) }) {
			t.Errorf("%d of two passkeys were removed: %v", done, errs)
		}
		a := modelstest.App{Fixture: f.Fixture, Secret: modelstest.Value(f.Credentials.StartTOTP(ctx, session))(t)}
		modelstest.Value(f.Credentials.EnableTOTP(ctx, session, a.Code(t, 0), c.Actor))(t)
		left := modelstest.Value(f.Credentials.Passkeys(ctx, session))(t)
		must(t, f.Credentials.RemovePasskey(ctx, session, left[0].ID, c.Actor))
		checkError(t, "the app", f.Credentials.DisableTOTP(ctx, session, c.Actor), value.ErrLastFactor)
		must(t, f.Accounts.RequireSecondFactor(ctx, c.ID, false, c.Actor))
		must(t, f.Credentials.DisableTOTP(ctx, session, c.Actor))
	})
}

func TestUserHasTenPasskeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		session := f.SignedIn(t, c)
		done, errs := modelstest.AtOnce(12, func(i int) error {
			passkey := people.Passkey{CredentialID: fmt.Append(nil, i), Credential: "{}", Name: "Phone"}
			return f.Credentials.AddPasskey(t.Context(), session, passkey, uuid.NewString(), c.Actor)
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
		c, token := f.newMember(t, f.Customer(t))
		session := f.Find(t, token)
		first, second := f.Passkey(t, session, c.Actor), f.Passkey(t, session, c.Actor)
		must(t, f.Credentials.RemovePasskey(ctx, session, first.ID, c.Actor))
		checkError(t, "the last passkey", f.Credentials.RemovePasskey(ctx, session, second.ID, c.Actor), value.ErrOnlySignIn)
		if _, err := f.Credentials.FindPasskey(ctx, second.CredentialID); err != nil {
			t.Errorf("it is gone: %v", err)
		}
	})
}

func TestSecondFactorIsRequired(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, owner := t.Context(), f.Customer(t)
		member, token := f.newMember(t, owner)
		checkError(t, "by a member", f.Accounts.RequireSecondFactor(ctx, owner.ID, true, member.Actor), value.ErrNotOwner)
		checkError(t, "by another account's owner", f.Accounts.RequireSecondFactor(ctx, owner.ID, true, f.Customer(t).Actor), value.ErrNotOwner)
		due := func(want bool) people.Session {
			t.Helper()
			session, err := f.Sessions.Find(ctx, token, modelstest.Browser)
			if err != nil || session.FactorDue != want {
				t.Errorf("due %t, %v, want %t", session.FactorDue, err, want)
			}
			return session
		}
		due(false)
		checkError(t, "by an owner without one", f.Accounts.RequireSecondFactor(ctx, owner.ID, true, owner.Actor), value.ErrNoFactor)
		f.Passkey(t, f.SignedIn(t, owner), owner.Actor)
		if people, without, err := f.Accounts.CountFactors(ctx, owner.ID); err != nil || people != 2 || without != 1 {
			t.Errorf("%d people, %d without a factor, %v", people, without, err)
		}
		for range 2 {
			must(t, f.Accounts.RequireSecondFactor(ctx, owner.ID, true, owner.Actor))
		}
		session := due(true)
		f.Passkey(t, session, member.Actor)
		due(false)
		// A password alone would get around the passkey.
		must(t, errOf(f.Credentials.ChangePassword(ctx, session, "", newPassword, member.Actor)))
		user := modelstest.Value(f.SignIn.VerifyPassword(ctx, member.User.Email, newPassword, modelstest.Browser))(t)
		if signedIn, err := f.SignIn.Start(ctx, user, modelstest.Browser); err != nil || !signedIn.Pending {
			t.Errorf("pending %t, %v", signedIn.Pending, err)
		}
		must(t, f.Accounts.RequireSecondFactor(ctx, owner.ID, false, owner.Actor))
		if signedIn, err := f.SignIn.Start(ctx, user, modelstest.Browser); err != nil || signedIn.Pending {
			t.Errorf("pending %t, %v", signedIn.Pending, err)
		}
		for _, action := range []record.Action{record.ActionSecondFactorRequired, record.ActionSecondFactorOptional} {
			if recorded := f.Recorded(t, owner, action); len(recorded) != 1 {
				t.Errorf("%s: recorded %+v", action, recorded)
			}
		}
	})
}

func TestOperatorResetsSecondFactors(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		factors := func(app, passkey bool) {
			t.Helper()
			users, err := f.People.List(ctx, c.ID, value.Page{Limit: 1})
			if must(t, err); users.Items[0].HasApp != app || users.Items[0].HasPasskey != passkey {
				t.Errorf("want app %t, passkey %t: %+v", app, passkey, users.Items[0])
			}
		}
		f.TwoSteps(t, c)
		token := f.linkSession(t, c)
		session := f.Find(t, token)
		factors(true, false)
		passkey := f.Passkey(t, session, c.Actor)
		factors(true, true)
		must(t, f.Credentials.ResetSecondFactor(ctx, c.User.AccountID, c.User.ID))
		factors(false, false)
		checkError(t, "a session", errOf(f.Sessions.Find(ctx, token, modelstest.Browser)), value.ErrSessionNotFound)
		checkError(t, "the passkey", errOf(f.Credentials.FindPasskey(ctx, passkey.CredentialID)), value.ErrPasskeyNotFound)
		if signedIn, err := f.SignIn.Start(ctx, c.User, modelstest.Browser); err != nil || signedIn.Pending {
			t.Errorf("pending %t, %v", signedIn.Pending, err)
		}
		f.CheckCount(t, 0, "SELECT count(*) FROM recovery_codes")
		if recorded := f.Recorded(t, c, record.ActionSecondFactorReset); len(recorded) != 1 || recorded[0].ActorName != "Operator" {
			t.Errorf("recorded %+v", recorded)
		}
		checkError(t, "nobody", f.Credentials.ResetSecondFactor(ctx, c.User.AccountID, uuid.New()), value.ErrUserNotFound)
	})
}

func TestConcurrentConnectionsOfOneIdentity(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		session := f.SignedIn(t, c)
		subjects := []string{"ada", "ada", "eve", "eve"}
		_, errs := modelstest.AtOnce(len(subjects), func(i int) error {
			identity := people.Identity{Issuer: "https://a.example", Subject: subjects[i]}
			return f.Credentials.ConnectIdentity(t.Context(), session, identity, "Example", c.Actor)
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
