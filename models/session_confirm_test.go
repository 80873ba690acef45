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
		session, err := f.Session(ctx, token, browser)
		must(t, err)
		if f.clock.Advance(10*time.Minute - time.Second); !session.Fresh(f.clock.Now()) {
			t.Error("not fresh before ten minutes")
		}
		if f.clock.Advance(time.Second); session.Fresh(f.clock.Now()) {
			t.Error("fresh after ten minutes")
		}
		checkError(t, "a wrong password", errOf(f.ConfirmPassword(ctx, session, newPassword, c.actor)), models.ErrWrongCredentials)
		renewed, err := f.ConfirmPassword(ctx, session, password, c.actor)
		must(t, err)
		checkError(t, "the old token", errOf(f.Session(ctx, token, browser)), models.ErrSessionNotFound)
		for _, fresh := range []bool{true, false} {
			session, err = f.Session(ctx, renewed, browser)
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
		session, err := f.Session(t.Context(), token, browser)
		must(t, err)
		checkError(t, "no password", errOf(f.ConfirmPassword(t.Context(), session, "", c.actor)), models.ErrSignInTooOld)
	})
}
