package models_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
)

// newMember returns a member without a password as a customer, and the token of a session that a
// link has begun.
func (f *fixture) newMember(t *testing.T, c customer) (member customer, token string) {
	t.Helper()
	user := f.member(t, c, models.RoleMember)
	signedIn := modelstest.Value(f.SignIn.UseLink(t.Context(), f.link(t, c, user), browser))(t)
	return customer{c.Account, user, models.UserActor(user.ID, "203.0.113.8")}, signedIn.Token
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
			lost := modelstest.Value(f.SignIn.UseLink(ctx, f.link(t, c, c.user), browser))(t)
			session, err := f.Sessions.Find(ctx, token, browser)
			if err != nil || !session.NoPassword {
				t.Fatalf("%s: %+v, %v", name, session, err)
			}
			var invalid *models.InvalidError
			if _, err := f.Credentials.ChangePassword(ctx, session, "", session.Email, c.actor); !errors.As(err, &invalid) || invalid.Field != "password" {
				t.Errorf("%s: %v", name, err)
			}
			renewed, err := f.Credentials.ChangePassword(ctx, session, "", newPassword, c.actor)
			must(t, err)
			signIn(t, f.Store, c.user.Email, newPassword, address(1), nil)
			for _, token := range []string{token, lost.Token} {
				checkError(t, name, errOf(f.Sessions.Find(ctx, token, browser)), models.ErrSessionNotFound)
			}
			if kept, err := f.Sessions.Find(ctx, renewed, browser); err != nil || kept.ID != session.ID || kept.NoPassword {
				t.Errorf("%s: %+v, %v", name, kept, err)
			}
			if set := f.recorded(t, c, models.ActionPasswordChanged); len(set) != 1 || set[0].ActorName != c.user.Email {
				t.Errorf("%s: recorded %+v", name, set)
			}
			// The session says that there is no password, but there is one now.
			checkError(t, name, errOf(f.Credentials.ChangePassword(ctx, session, "", newPassword+"!", c.actor)), models.ErrWrongCredentials)
			checkError(t, name, f.Credentials.RequestEmailChange(ctx, session, "", "new@example.com", c.actor), models.ErrWrongCredentials)
		}
	})
}

func TestFirstPasswordTakesAFreshSignIn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, token := f.newMember(t, f.customer(t))
		f.clock.Advance(10*time.Minute - time.Second)
		session := modelstest.Value(f.Sessions.Find(t.Context(), token, browser))(t)
		must(t, f.Credentials.RequestEmailChange(t.Context(), session, "", "new."+c.user.Email, c.actor))
		f.clock.Advance(time.Second)
		checkError(t, "password", errOf(f.Credentials.ChangePassword(t.Context(), session, "", newPassword, c.actor)), models.ErrSignInTooOld)
		checkError(t, "email", f.Credentials.RequestEmailChange(t.Context(), session, "", c.user.Email, c.actor), models.ErrSignInTooOld)
		if n := f.count(t, "SELECT count(*) FROM users WHERE password_hash = ?", c.user.PasswordHash); n != 1 {
			t.Error("the user has a password")
		}
	})
}

// Of several concurrent requests from two sessions, one sets the first password.
func TestFirstPasswordIsSetOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		c, token := f.newMember(t, f.customer(t))
		second := modelstest.Value(f.SignIn.UseLink(ctx, f.link(t, c, c.user), browser))(t)
		stores := []*models.Store{f.Store, f.open(t, models.Options{})}
		var sessions []models.Session
		for _, token := range []string{token, second.Token} {
			session := modelstest.Value(f.Sessions.Find(ctx, token, browser))(t)
			sessions = append(sessions, session)
		}
		set, errs := atOnce(4, func(i int) error {
			return errOf(stores[i%2].Credentials.ChangePassword(ctx, sessions[i/2], "", newPassword+strings.Repeat("!", i), c.actor))
		})
		for _, err := range errs {
			checkError(t, "a later request", err, models.ErrWrongCredentials)
		}
		if n := f.sessionsOf(t, c); set != 1 || n != 1 {
			t.Errorf("set %d times, %d sessions are left", set, n)
		}
	})
}
