package models_test

import (
	"testing"
	"time"

	"portal/models"
)

func TestPasswordMakesTheSignInFreshAgain(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		token := f.session(t, c)
		session, err := f.Sessions.Find(ctx, token, browser)
		must(t, err)
		if f.clock.Advance(10*time.Minute - time.Second); !session.Fresh(f.clock.Now()) {
			t.Error("not fresh before ten minutes")
		}
		if f.clock.Advance(time.Second); session.Fresh(f.clock.Now()) {
			t.Error("fresh after ten minutes")
		}
		checkError(t, "a wrong password", errOf(f.Sessions.Reauthenticate(ctx, session, newPassword, c.actor)), models.ErrWrongCredentials)
		renewed, err := f.Sessions.Reauthenticate(ctx, session, password, c.actor)
		must(t, err)
		checkError(t, "the old token", errOf(f.Sessions.Find(ctx, token, browser)), models.ErrSessionNotFound)
		for _, fresh := range []bool{true, false} {
			session, err = f.Sessions.Find(ctx, renewed, browser)
			if err != nil || session.Fresh(f.clock.Now()) != fresh {
				t.Errorf("%+v, %v, want fresh %t", session, err, fresh)
			}
			f.clock.Advance(10 * time.Minute)
		}
	})
}

func TestFreshSignInWithoutAPasswordIsANewOne(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, token := f.newMember(t, f.customer(t))
		session, err := f.Sessions.Find(t.Context(), token, browser)
		must(t, err)
		checkError(t, "no password", errOf(f.Sessions.Reauthenticate(t.Context(), session, "", c.actor)), models.ErrSignInTooOld)
	})
}
