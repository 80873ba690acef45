package people_test

import (
	"strings"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

const newPassword = "another four good words"

func TestPasswordIsChanged(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		token, lost, foreign := f.Session(t, c), f.Session(t, c), f.Session(t, other)
		session := f.Find(t, token)
		for name, refused := range map[string]string{"short": "short", "long": strings.Repeat("ab ", 50), "the email": session.Email} {
			checkInvalid(t, name, errOf(f.Credentials.ChangePassword(ctx, session, password, refused, c.Actor)), "password")
		}
		checkError(t, "with a wrong password", errOf(f.Credentials.ChangePassword(ctx, session, modelstest.WrongPassword, newPassword, c.Actor)), value.ErrWrongCredentials)
		both := errOf(f.Credentials.ChangePassword(ctx, session, modelstest.WrongPassword, "short", c.Actor))
		checkError(t, "with both wrong", both, value.ErrWrongCredentials)
		checkInvalid(t, "with both wrong", both, "password")
		modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Address(1), nil)
		checkError(t, "another session before the change", errOf(f.Sessions.Find(ctx, lost, modelstest.Browser)), nil)

		renewed := modelstest.Value(f.Credentials.ChangePassword(ctx, session, password, newPassword, c.Actor))(t)
		modelstest.SignIn(t, f.Store, c.User.Email, newPassword, modelstest.Address(1), nil)
		modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Address(1), value.ErrWrongCredentials)
		modelstest.SignIn(t, f.Store, other.User.Email, password, modelstest.Address(1), nil)
		for name, token := range map[string]string{"another session of the user": lost, "a copy of the session": token} {
			checkError(t, name, errOf(f.Sessions.Find(ctx, token, modelstest.Browser)), value.ErrSessionNotFound)
		}
		if kept, err := f.Sessions.Find(ctx, renewed, modelstest.Browser); err != nil || kept.ID != session.ID {
			t.Errorf("the session is %s, was %s, %v", kept.ID, session.ID, err)
		}
		for _, token := range []string{renewed, foreign} {
			must(t, errOf(f.Sessions.Find(ctx, token, modelstest.Browser)))
		}
		changed := f.Recorded(t, c, record.ActionPasswordChanged)
		if len(changed) != 1 || changed[0].ActorName != c.User.Email || *changed[0].SubjectID != c.User.ID {
			t.Errorf("recorded %+v", changed)
		}
	})
}

// Of several concurrent changes, only the first succeeds, because it replaces the old password.
func TestConcurrentPasswordChangesChangeItOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		session := f.SignedIn(t, c)
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		changed, errs := modelstest.AtOnce(3, func(i int) error {
			return errOf(stores[i%2].Credentials.ChangePassword(t.Context(), session, password, newPassword+strings.Repeat("!", i), c.Actor))
		})
		checkErrors(t, "a later change", errs, value.ErrWrongCredentials)
		if changed != 1 {
			t.Errorf("changed %d times", changed)
		}
	})
}

func TestPasswordIsResetByAnOperator(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		token := f.Session(t, c)
		checkInvalid(t, "short", f.Credentials.ResetPassword(ctx, c.User.Email, "short"), "password")
		for _, email := range []string{"nobody@example.com", "", "a\x00b@example.com"} {
			checkError(t, email, f.Credentials.ResetPassword(ctx, email, newPassword), value.ErrUserNotFound)
		}
		must(t, f.Credentials.ResetPassword(ctx, " "+strings.ToUpper(c.User.Email), newPassword))
		modelstest.SignIn(t, f.Store, c.User.Email, newPassword, modelstest.Address(1), nil)
		modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Address(1), value.ErrWrongCredentials)
		checkError(t, "a session after the reset", errOf(f.Sessions.Find(ctx, token, modelstest.Browser)), value.ErrSessionNotFound)
		reset := f.Recorded(t, c, record.ActionPasswordReset)
		if len(reset) != 1 || reset[0].ActorName != "Operator" {
			t.Errorf("recorded %+v", reset)
		}
	})
}

// A hash with old parameters is replaced at the next sign-in with the right password.
func TestOldPasswordHashIsUpgraded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		hash := func() (hash string) {
			t.Helper()
			f.Scan(t, "SELECT password_hash FROM users WHERE id = ?", []any{c.User.ID}, &hash)
			return hash
		}
		modelstest.SignIn(t, f.Store, c.User.Email, modelstest.WrongPassword, modelstest.Address(1), value.ErrWrongCredentials)
		if hash() != c.User.PasswordHash {
			t.Error("replaced for a wrong password")
		}
		modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Address(1), nil)
		upgraded := hash()
		if !strings.HasPrefix(upgraded, "$argon2id$v=19$m=64,t=1,p=1$") {
			t.Errorf("the hash is %s", upgraded)
		}
		modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Address(1), nil)
		if hash() != upgraded {
			t.Error("replaced again")
		}
	})
}

func TestWrongPasswordsAreInTheActivityLog(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		refusals := func(c customer) []record.Activity { return f.Recorded(t, c, record.ActionSignInFailed) }
		modelstest.SignIn(t, f.Store, "nobody@example.com", modelstest.WrongPassword, modelstest.Address(1), value.ErrWrongCredentials)
		for range 10 {
			modelstest.SignIn(t, f.Store, c.User.Email, modelstest.WrongPassword, modelstest.Address(3), value.ErrWrongCredentials)
		}
		// Attempts beyond the limit are not recorded.
		for range 5 {
			limited(t, f.Store, c.User.Email, modelstest.WrongPassword, modelstest.Address(3), time.Minute)
		}
		recorded := func(repeats int64) func() bool {
			return func() bool { r := refusals(c); return len(r) > 0 && r[0].Repeats == repeats }
		}
		eventually(t, "ten are recorded as one activity", recorded(9))
		first := refusals(c)[0]
		modelstest.Facts(t, first, map[string]bool{
			"one activity": len(refusals(c)) == 1,
			"one address":  !first.Elsewhere && first.Address == modelstest.Address(3),
			"actor":        first.ActorKind == record.ActorVisitor && first.ActorName == "Someone",
			"no user":      first.ActorID == nil,
			"email":        first.Label == c.User.Email,
			"user's id":    first.SubjectID != nil && *first.SubjectID == c.User.ID,
		})
		f.Clock.Advance(time.Minute)
		modelstest.SignIn(t, f.Store, c.User.Email, modelstest.WrongPassword, modelstest.Address(4), value.ErrWrongCredentials)
		eventually(t, "another ten minutes are another activity", func() bool { return len(refusals(c)) == 2 })
		modelstest.SignIn(t, f.Open(t, models.Options{}), c.User.Email, modelstest.WrongPassword, modelstest.Address(5), value.ErrWrongCredentials)
		eventually(t, "another instance counts too", recorded(1))
		if r := refusals(c); len(r) != 2 || !r[0].Elsewhere || r[0].Address != modelstest.Address(4) || r[1].Elsewhere {
			t.Errorf("recorded %+v", r)
		}
		if len(refusals(other)) != 0 {
			t.Error("another account has an activity")
		}
	})
}

// newMember returns a member without a password as a customer, and the token of a session that a
// link has begun.
func (f *fixture) newMember(t *testing.T, c customer) (member customer, token string) {
	t.Helper()
	user := f.Member(t, c, people.RoleMember)
	signedIn := modelstest.Value(f.SignIn.UseLink(t.Context(), f.link(t, c, user), modelstest.Browser))(t)
	return customer{Account: c.Account, User: user, Actor: record.UserActor(user.ID, "203.0.113.8")}, signedIn.Token
}

func TestFirstPasswordIsSet(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		// Another release may have stored the absent hash with other parameters.
		for name, hash := range map[string]string{"new": "", "old": "$argon2id$v=19$m=19456,t=2,p=1$" + strings.Repeat("A", 22) + "$" + strings.Repeat("A", 43)} {
			c, token := f.newMember(t, f.Customer(t))
			if hash != "" {
				f.Exec(t, "UPDATE users SET password_hash = ? WHERE id = ?", hash, c.User.ID)
			}
			lost := f.linkSession(t, c)
			session, err := f.Sessions.Find(ctx, token, modelstest.Browser)
			if err != nil || !session.NoPassword {
				t.Fatalf("%s: %+v, %v", name, session, err)
			}
			checkInvalid(t, name, errOf(f.Credentials.ChangePassword(ctx, session, "", session.Email, c.Actor)), "password")
			renewed := modelstest.Value(f.Credentials.ChangePassword(ctx, session, "", newPassword, c.Actor))(t)
			modelstest.SignIn(t, f.Store, c.User.Email, newPassword, modelstest.Address(1), nil)
			for _, token := range []string{token, lost} {
				checkError(t, name, errOf(f.Sessions.Find(ctx, token, modelstest.Browser)), value.ErrSessionNotFound)
			}
			if kept, err := f.Sessions.Find(ctx, renewed, modelstest.Browser); err != nil || kept.ID != session.ID || kept.NoPassword {
				t.Errorf("%s: %+v, %v", name, kept, err)
			}
			if set := f.Recorded(t, c, record.ActionPasswordChanged); len(set) != 1 || set[0].ActorName != c.User.Email {
				t.Errorf("%s: recorded %+v", name, set)
			}
			// The session says that there is no password, but there is one now.
			checkError(t, name, errOf(f.Credentials.ChangePassword(ctx, session, "", newPassword+"!", c.Actor)), value.ErrWrongCredentials)
			checkError(t, name, f.Credentials.RequestEmailChange(ctx, session, "", "new@example.com", c.Actor), value.ErrWrongCredentials)
		}
	})
}

func TestFirstPasswordTakesAFreshSignIn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, token := f.newMember(t, f.Customer(t))
		f.Clock.Advance(10*time.Minute - time.Second)
		session := f.Find(t, token)
		must(t, f.Credentials.RequestEmailChange(t.Context(), session, "", "new."+c.User.Email, c.Actor))
		f.Clock.Advance(time.Second)
		checkError(t, "password", errOf(f.Credentials.ChangePassword(t.Context(), session, "", newPassword, c.Actor)), value.ErrSignInTooOld)
		checkError(t, "email", f.Credentials.RequestEmailChange(t.Context(), session, "", c.User.Email, c.Actor), value.ErrSignInTooOld)
		f.CheckCount(t, 1, "SELECT count(*) FROM users WHERE password_hash = ?", c.User.PasswordHash)
	})
}
