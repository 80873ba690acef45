package models_test

import (
	"strings"
	"testing"
	"time"

	"portal/models"
)

func (f *fixture) link(t *testing.T, c customer, user models.User) string {
	t.Helper()
	token, expiresAt, err := f.SignIn.CreateLink(t.Context(), c.ID, user.ID, models.Operator())
	must(t, err)
	if left := expiresAt.Sub(f.clock.Now()); left != 5*time.Minute {
		t.Errorf("it expires in %s", left)
	}
	return token
}

func TestSignInLinkWorksOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		member := f.member(t, c, models.RoleMember)
		token := f.link(t, c, member)
		for range 2 { // looking at the page does not use the link
			if user, err := f.SignIn.LinkUser(t.Context(), token); err != nil || user.ID != member.ID {
				t.Errorf("%+v, %v", user, err)
			}
		}
		const clients = 8
		stores := []*models.Store{f.Store, f.open(t, models.Options{})}
		sessionTokens := make([]string, clients)
		used, errs := atOnce(clients, func(i int) error {
			signedIn, err := stores[i%2].SignIn.UseLink(t.Context(), token, browser)
			sessionTokens[i] = signedIn.Token
			return err
		})
		if used != 1 {
			t.Fatalf("%d of %d clients used the link, errors %v", used, clients, errs)
		}
		checkErrors(t, "the others", errs, models.ErrLinkInvalid)
		session, err := f.Sessions.Find(t.Context(), strings.Join(sessionTokens, ""), browser)
		if err != nil || session.UserID != member.ID || session.AccountID != c.ID {
			t.Errorf("%+v, %v", session, err)
		}
		f.checkCount(t, 1, "SELECT count(*) FROM sessions")
		checkError(t, "page", errOf(f.SignIn.LinkUser(t.Context(), token)), models.ErrLinkInvalid)
	})
}

func TestSignInLinkExpires(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		token := f.link(t, c, c.user)
		f.clock.Advance(5*time.Minute - time.Second)
		must(t, errOf(f.SignIn.LinkUser(t.Context(), token)))
		f.clock.Advance(time.Second)
		checkError(t, "page", errOf(f.SignIn.LinkUser(t.Context(), token)), models.ErrLinkInvalid)
		_, err := f.SignIn.UseLink(t.Context(), token, browser)
		checkError(t, "use", err, models.ErrLinkInvalid)
		f.clock.Advance(time.Second)
		must(t, f.Purge(t.Context()))
		f.checkCount(t, 0, "SELECT count(*) FROM sign_in_links")
	})
}

func TestSignInLinkOfSomeoneDisabledOrRemoved(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.customer(t), f.customer(t)
		member := f.member(t, c, models.RoleMember)
		token := f.link(t, c, member)
		create := func(accountID models.Account, user models.User) error {
			_, _, err := f.SignIn.CreateLink(t.Context(), accountID.ID, user.ID, models.Operator())
			return err
		}
		checkError(t, "of another account", create(other.Account, member), models.ErrUserNotFound)
		// As an operator's SQL does, which does not end links.
		f.exec(t, "UPDATE accounts SET disabled_at = ? WHERE id = ?", f.clock.Now(), c.ID)
		checkError(t, "account disabled, page", errOf(f.SignIn.LinkUser(t.Context(), token)), models.ErrSignInDisabled)
		_, err := f.SignIn.UseLink(t.Context(), token, browser)
		checkError(t, "account disabled, use", err, models.ErrSignInDisabled)
		checkError(t, "account disabled, create", create(c.Account, member), models.ErrSignInDisabled)
		f.exec(t, "UPDATE accounts SET disabled_at = NULL WHERE id = ?", c.ID)
		must(t, errOf(f.SignIn.LinkUser(t.Context(), token)))
		must(t, f.People.Remove(t.Context(), c.ID, member.ID, models.Operator()))
		_, err = f.SignIn.UseLink(t.Context(), token, browser)
		checkError(t, "removed, use", err, models.ErrLinkInvalid)
		checkError(t, "removed, create", create(c.Account, member), models.ErrUserNotFound)
	})
}

func TestNewPasswordEndsSignInLinks(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		session := f.signedIn(t, c)
		kept := f.link(t, other, other.user)
		changed := f.link(t, c, c.user)
		must(t, errOf(f.Credentials.ChangePassword(ctx, session, password, newPassword, c.actor)))
		checkError(t, "after a change", errOf(f.SignIn.LinkUser(ctx, changed)), models.ErrLinkInvalid)
		reset := f.link(t, c, c.user)
		must(t, f.Credentials.ResetPassword(ctx, c.user.Email, password))
		_, err := f.SignIn.UseLink(ctx, reset, browser)
		checkError(t, "after a reset", err, models.ErrLinkInvalid)
		must(t, errOf(f.SignIn.LinkUser(ctx, kept)))
	})
}

func TestUserHasTenSignInLinks(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		first := f.link(t, c, c.user)
		for range 10 {
			f.clock.Advance(time.Millisecond)
			must(t, errOf(f.SignIn.LinkUser(t.Context(), first)))
			f.link(t, c, c.user)
		}
		checkError(t, "the oldest of eleven links", errOf(f.SignIn.LinkUser(t.Context(), first)), models.ErrLinkInvalid)
		f.checkCount(t, 10, "SELECT count(*) FROM sign_in_links")
	})
}
