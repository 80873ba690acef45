package models_test

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
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		token, lost, foreign := f.session(t, c), f.session(t, c), f.session(t, other)
		session := f.find(t, token)
		for name, refused := range map[string]string{"short": "short", "long": strings.Repeat("ab ", 50), "the email": session.Email} {
			checkInvalid(t, name, errOf(f.Credentials.ChangePassword(ctx, session, password, refused, c.actor)), "password")
		}
		checkError(t, "with a wrong password", errOf(f.Credentials.ChangePassword(ctx, session, wrongPassword, newPassword, c.actor)), value.ErrWrongCredentials)
		both := errOf(f.Credentials.ChangePassword(ctx, session, wrongPassword, "short", c.actor))
		checkError(t, "with both wrong", both, value.ErrWrongCredentials)
		checkInvalid(t, "with both wrong", both, "password")
		signIn(t, f.Store, c.user.Email, password, address(1), nil)
		checkError(t, "another session before the change", errOf(f.Sessions.Find(ctx, lost, browser)), nil)

		renewed := modelstest.Value(f.Credentials.ChangePassword(ctx, session, password, newPassword, c.actor))(t)
		signIn(t, f.Store, c.user.Email, newPassword, address(1), nil)
		signIn(t, f.Store, c.user.Email, password, address(1), value.ErrWrongCredentials)
		signIn(t, f.Store, other.user.Email, password, address(1), nil)
		for name, token := range map[string]string{"another session of the user": lost, "a copy of the session": token} {
			checkError(t, name, errOf(f.Sessions.Find(ctx, token, browser)), value.ErrSessionNotFound)
		}
		if kept, err := f.Sessions.Find(ctx, renewed, browser); err != nil || kept.ID != session.ID {
			t.Errorf("the session is %s, was %s, %v", kept.ID, session.ID, err)
		}
		for _, token := range []string{renewed, foreign} {
			must(t, errOf(f.Sessions.Find(ctx, token, browser)))
		}
		changed := f.recorded(t, c, record.ActionPasswordChanged)
		if len(changed) != 1 || changed[0].ActorName != c.user.Email || *changed[0].SubjectID != c.user.ID {
			t.Errorf("recorded %+v", changed)
		}
	})
}

// Of several concurrent changes, only the first succeeds, because it replaces the old password.
func TestConcurrentPasswordChangesChangeItOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		session := f.signedIn(t, c)
		stores := []*models.Store{f.Store, f.open(t, models.Options{})}
		changed, errs := atOnce(3, func(i int) error {
			return errOf(stores[i%2].Credentials.ChangePassword(t.Context(), session, password, newPassword+strings.Repeat("!", i), c.actor))
		})
		checkErrors(t, "a later change", errs, value.ErrWrongCredentials)
		if changed != 1 {
			t.Errorf("changed %d times", changed)
		}
	})
}

func TestPasswordIsResetByAnOperator(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		token := f.session(t, c)
		checkInvalid(t, "short", f.Credentials.ResetPassword(ctx, c.user.Email, "short"), "password")
		for _, email := range []string{"nobody@example.com", "", "a\x00b@example.com"} {
			checkError(t, email, f.Credentials.ResetPassword(ctx, email, newPassword), value.ErrUserNotFound)
		}
		must(t, f.Credentials.ResetPassword(ctx, " "+strings.ToUpper(c.user.Email), newPassword))
		signIn(t, f.Store, c.user.Email, newPassword, address(1), nil)
		signIn(t, f.Store, c.user.Email, password, address(1), value.ErrWrongCredentials)
		checkError(t, "a session after the reset", errOf(f.Sessions.Find(ctx, token, browser)), value.ErrSessionNotFound)
		reset := f.recorded(t, c, record.ActionPasswordReset)
		if len(reset) != 1 || reset[0].ActorName != "Operator" {
			t.Errorf("recorded %+v", reset)
		}
	})
}

// A hash with old parameters is replaced at the next sign-in with the right password.
func TestOldPasswordHashIsUpgraded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		store := f.open(t, models.Options{PasswordMemory: modelstest.DefaultPasswordMemory})
		hash := func() (hash string) {
			t.Helper()
			f.scan(t, "SELECT password_hash FROM users WHERE id = ?", []any{c.user.ID}, &hash)
			return hash
		}
		signIn(t, store, c.user.Email, wrongPassword, address(1), value.ErrWrongCredentials)
		if hash() != c.user.PasswordHash {
			t.Error("replaced for a wrong password")
		}
		signIn(t, store, c.user.Email, password, address(1), nil)
		upgraded := hash()
		if !strings.HasPrefix(upgraded, "$argon2id$v=19$m=47104,t=1,p=1$") {
			t.Errorf("the hash is %s", upgraded)
		}
		signIn(t, store, c.user.Email, password, address(1), nil)
		if hash() != upgraded {
			t.Error("replaced again")
		}
	})
}

func TestWrongPasswordsAreInTheActivityLog(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.customer(t), f.customer(t)
		refusals := func(c customer) []record.Activity { return f.recorded(t, c, record.ActionSignInFailed) }
		signIn(t, f.Store, "nobody@example.com", wrongPassword, address(1), value.ErrWrongCredentials)
		for range 10 {
			signIn(t, f.Store, c.user.Email, wrongPassword, address(3), value.ErrWrongCredentials)
		}
		// Attempts beyond the limit are not recorded.
		for range 5 {
			limited(t, f.Store, c.user.Email, wrongPassword, address(3), time.Minute)
		}
		recorded := func(repeats int64) func() bool {
			return func() bool { r := refusals(c); return len(r) > 0 && r[0].Repeats == repeats }
		}
		eventually(t, "ten are recorded as one activity", recorded(9))
		first := refusals(c)[0]
		modelstest.Facts(t, first, map[string]bool{
			"one activity": len(refusals(c)) == 1,
			"one address":  !first.Elsewhere && first.Address == address(3),
			"actor":        first.ActorKind == record.ActorVisitor && first.ActorName == "Someone",
			"no user":      first.ActorID == nil,
			"email":        first.Label == c.user.Email,
			"user's id":    first.SubjectID != nil && *first.SubjectID == c.user.ID,
		})
		f.clock.Advance(time.Minute)
		signIn(t, f.Store, c.user.Email, wrongPassword, address(4), value.ErrWrongCredentials)
		eventually(t, "another ten minutes are another activity", func() bool { return len(refusals(c)) == 2 })
		signIn(t, f.open(t, models.Options{}), c.user.Email, wrongPassword, address(5), value.ErrWrongCredentials)
		eventually(t, "another instance counts too", recorded(1))
		if r := refusals(c); len(r) != 2 || !r[0].Elsewhere || r[0].Address != address(4) || r[1].Elsewhere {
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
	user := f.member(t, c, people.RoleMember)
	signedIn := modelstest.Value(f.SignIn.UseLink(t.Context(), f.link(t, c, user), browser))(t)
	return customer{Account: c.Account, user: user, actor: record.UserActor(user.ID, "203.0.113.8")}, signedIn.Token
}

func TestFirstPasswordIsSet(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		// Another release may have stored the absent hash with other parameters.
		for name, hash := range map[string]string{"new": "", "old": "$argon2id$v=19$m=19456,t=2,p=1$" + strings.Repeat("A", 22) + "$" + strings.Repeat("A", 43)} {
			c, token := f.newMember(t, f.customer(t))
			if hash != "" {
				f.exec(t, "UPDATE users SET password_hash = ? WHERE id = ?", hash, c.user.ID)
			}
			lost := f.linkSession(t, c)
			session, err := f.Sessions.Find(ctx, token, browser)
			if err != nil || !session.NoPassword {
				t.Fatalf("%s: %+v, %v", name, session, err)
			}
			checkInvalid(t, name, errOf(f.Credentials.ChangePassword(ctx, session, "", session.Email, c.actor)), "password")
			renewed := modelstest.Value(f.Credentials.ChangePassword(ctx, session, "", newPassword, c.actor))(t)
			signIn(t, f.Store, c.user.Email, newPassword, address(1), nil)
			for _, token := range []string{token, lost} {
				checkError(t, name, errOf(f.Sessions.Find(ctx, token, browser)), value.ErrSessionNotFound)
			}
			if kept, err := f.Sessions.Find(ctx, renewed, browser); err != nil || kept.ID != session.ID || kept.NoPassword {
				t.Errorf("%s: %+v, %v", name, kept, err)
			}
			if set := f.recorded(t, c, record.ActionPasswordChanged); len(set) != 1 || set[0].ActorName != c.user.Email {
				t.Errorf("%s: recorded %+v", name, set)
			}
			// The session says that there is no password, but there is one now.
			checkError(t, name, errOf(f.Credentials.ChangePassword(ctx, session, "", newPassword+"!", c.actor)), value.ErrWrongCredentials)
			checkError(t, name, f.Credentials.RequestEmailChange(ctx, session, "", "new@example.com", c.actor), value.ErrWrongCredentials)
		}
	})
}

func TestFirstPasswordTakesAFreshSignIn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, token := f.newMember(t, f.customer(t))
		f.clock.Advance(10*time.Minute - time.Second)
		session := f.find(t, token)
		must(t, f.Credentials.RequestEmailChange(t.Context(), session, "", "new."+c.user.Email, c.actor))
		f.clock.Advance(time.Second)
		checkError(t, "password", errOf(f.Credentials.ChangePassword(t.Context(), session, "", newPassword, c.actor)), value.ErrSignInTooOld)
		checkError(t, "email", f.Credentials.RequestEmailChange(t.Context(), session, "", c.user.Email, c.actor), value.ErrSignInTooOld)
		f.checkCount(t, 1, "SELECT count(*) FROM users WHERE password_hash = ?", c.user.PasswordHash)
	})
}
