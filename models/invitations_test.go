package models_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// invite creates an invitation from the customer's first user and returns it and its token.
func (f *fixture) invite(t *testing.T, c customer, email string, role people.Role) (people.Invitation, string) {
	t.Helper()
	invitation, token, err := f.Invitations.Create(t.Context(), c.ID, email, role, c.actor)
	must(t, err)
	return invitation, token
}

func newEmail() string { return uuid.NewString() + "@example.com" }

// accept returns the error of an attempt to accept an invitation.
func accept(ctx context.Context, s *models.Store, token, password string) error {
	return errOf(s.Invitations.Accept(ctx, token, password, browser))
}

func TestRenewedInvitationHasOneLink(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		old, ended := f.invite(t, c, newEmail(), people.RoleMember)
		f.clock.Advance(6 * value.Day)
		renew := func(c customer) error {
			_, _, err := f.Invitations.Renew(ctx, c.ID, old.ID, c.actor)
			return err
		}
		checkError(t, "another account's", renew(other), value.ErrInvitationNotFound)
		renewed, token, err := f.Invitations.Renew(ctx, c.ID, old.ID, c.actor)
		must(t, err)
		if left := renewed.ExpiresAt.Sub(f.clock.Now()); left != 7*value.Day || renewed.ID != old.ID {
			t.Errorf("renewed: %+v, expires in %s", renewed, left)
		}
		checkError(t, "the old link", accept(ctx, f.Store, ended, password), value.ErrInvitationInvalid)
		must(t, accept(ctx, f.Store, token, password))
		checkError(t, "an accepted one", renew(c), value.ErrInvitationNotFound)
	})
}

func TestInvitationAddsOneUser(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, email := f.customer(t), newEmail()
		invitation, token := f.invite(t, c, " "+email+" ", people.RoleMember)
		if left := invitation.ExpiresAt.Sub(f.clock.Now()); left != 7*value.Day {
			t.Errorf("it expires in %s", left)
		}
		for range 2 { // looking at the page does not use the invitation
			found, err := f.Invitations.Find(t.Context(), token)
			if err != nil || found.Email != email || found.AccountName != c.Name || found.Role != people.RoleMember {
				t.Errorf("%+v, %v", found, err)
			}
		}
		for _, guessable := range []string{"", "short", email, c.Name + c.Name + c.Name} {
			checkInvalid(t, guessable, accept(t.Context(), f.Store, token, guessable), "password")
		}
		stores := []*models.Store{f.Store, f.open(t, models.Options{})}
		used, errs := atOnce(4, func(i int) error { return accept(t.Context(), stores[i%2], token, password) })
		if used != 1 {
			t.Fatalf("%d clients used the invitation, errors %v", used, errs)
		}
		checkErrors(t, "the others", errs, value.ErrInvitationInvalid)
		signIn(t, f.Store, email, password, address(1), nil)
		users := modelstest.Value(f.People.List(t.Context(), c.ID, value.Page{After: c.user.ID, Limit: 10}))(t)
		if len(users.Items) != 1 {
			t.Fatalf("%+v", users)
		}
		if user := users.Items[0]; user.Email != email || user.Role != people.RoleMember || user.LastSignInAt == nil {
			t.Errorf("%+v", user)
		}
		checkError(t, "page", errOf(f.Invitations.Find(t.Context(), token)), value.ErrInvitationInvalid)
		for i, want := range []struct {
			action record.Action
			actor  string
		}{
			{record.ActionSignedIn, email}, {record.ActionInvitationAccepted, email}, {record.ActionInvitationCreated, c.user.Email},
		} {
			if got := f.activities(t, c)[i]; got.Action != want.action || got.ActorName != want.actor {
				t.Errorf("activity %d is %s by %s, want %v", i, got.Action, got.ActorName, want)
			}
		}
	})
}

func TestInvitationEnds(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.customer(t), f.customer(t)
		cancelled, cancelledToken := f.invite(t, c, newEmail(), people.RoleMember)
		checkError(t, "cancelled by another account", errOf(f.Invitations.Cancel(t.Context(), other.ID, cancelled.ID, other.actor)), value.ErrInvitationNotFound)
		got, err := f.Invitations.Cancel(t.Context(), c.ID, cancelled.ID, c.actor)
		if err != nil || got.Email != cancelled.Email {
			t.Errorf("%+v, %v", got, err)
		}
		checkError(t, "cancelled twice", errOf(f.Invitations.Cancel(t.Context(), c.ID, cancelled.ID, c.actor)), value.ErrInvitationNotFound)
		checkError(t, "cancelled", accept(t.Context(), f.Store, cancelledToken, password), value.ErrInvitationInvalid)

		expired, expiredToken := f.invite(t, c, newEmail(), people.RoleMember)
		f.clock.Advance(7*value.Day - time.Second)
		must(t, errOf(f.Invitations.Find(t.Context(), expiredToken)))
		f.clock.Advance(time.Second)
		checkError(t, "expired", accept(t.Context(), f.Store, expiredToken, password), value.ErrInvitationExpired)
		checkError(t, "cancelled after it expired", errOf(f.Invitations.Cancel(t.Context(), c.ID, expired.ID, c.actor)), value.ErrInvitationNotFound)
		if pending, err := f.Invitations.Pending(t.Context(), c.ID); err != nil || len(pending) != 0 {
			t.Errorf("%v, %v", pending, err)
		}
		f.invite(t, c, expired.Email, people.RoleMember) // replaces the expired one
		f.clock.Advance(8 * value.Day)
		must(t, f.Erasures.Purge(t.Context()))
		f.checkCount(t, 0, "SELECT count(*) FROM invitations")
	})
}

// Otherwise a removed owner could return with an invitation that nobody has used.
func TestInvitationEndsWithTheRightsOfItsInviter(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		for how, end := range map[string]func(people.User) error{
			"removed": func(u people.User) error { return f.People.Remove(t.Context(), c.ID, u.ID, c.actor) },
			"made a member": func(u people.User) error {
				return errOf(f.People.SetRole(t.Context(), c.ID, u.ID, people.RoleMember, c.actor))
			},
			"disabled": func(u people.User) error { return f.People.SetDisabled(t.Context(), u.Email, true) },
		} {
			inviter := f.member(t, c, people.RoleOwner)
			_, token, err := f.Invitations.Create(t.Context(), c.ID, newEmail(), people.RoleOwner, record.UserActor(inviter.ID, ""))
			must(t, err)
			must(t, end(inviter))
			checkError(t, how, errOf(f.Invitations.Find(t.Context(), token)), value.ErrInvitationInvalid)
			_, _, err = f.Invitations.Create(t.Context(), c.ID, newEmail(), people.RoleOwner, record.UserActor(inviter.ID, ""))
			checkError(t, how+", another one", err, value.ErrNotOwner)
		}
	})
}

func TestInvitationsAreRefused(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.customer(t), f.customer(t)
		create := func(email string, role people.Role, actor record.Actor) error {
			_, _, err := f.Invitations.Create(t.Context(), c.ID, email, role, actor)
			return err
		}
		email := newEmail()
		f.invite(t, c, email, people.RoleMember)
		checkError(t, "invited before", create(email, people.RoleOwner, c.actor), value.ErrEmailInvited)
		checkError(t, "user of another account", create(other.user.Email, people.RoleMember, c.actor), value.ErrEmailTaken)
		member := f.member(t, c, people.RoleMember)
		checkInvalid(t, "not an email", create("eve", people.RoleMember, c.actor), "email")
		checkInvalid(t, "no role", create(newEmail(), "admin", c.actor), "role")
		checkInvalid(t, "user of this account", create(member.Email, people.RoleMember, c.actor), "email")
		for who, actor := range map[string]record.Actor{
			"a member": record.UserActor(member.ID, ""), "an owner of another account": other.actor, "a visitor": {Kind: record.ActorVisitor},
		} {
			checkError(t, who, create(newEmail(), people.RoleMember, actor), value.ErrNotOwner)
		}
		for i := range value.MaxInvitations - 1 {
			must(t, create(fmt.Sprintf("%d-%s", i, email), people.RoleMember, c.actor))
		}
		checkError(t, "the 101st", create(newEmail(), people.RoleMember, c.actor), value.ErrInvitationLimit)
		if pending, err := f.Invitations.Pending(t.Context(), c.ID); err != nil || len(pending) != value.MaxInvitations {
			t.Errorf("%d invitations, %v", len(pending), err)
		}
	})
}

func TestInvitationOfAPersonWhoBecameAUser(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other, email := f.customer(t), f.customer(t), newEmail()
		_, token := f.invite(t, c, email, people.RoleMember)
		_, elsewhere := f.invite(t, other, email, people.RoleMember)
		must(t, accept(t.Context(), f.Store, elsewhere, password))
		checkError(t, "joined another account", accept(t.Context(), f.Store, token, password), value.ErrEmailTaken)

		added := newEmail()
		_, token = f.invite(t, c, added, people.RoleMember)
		must(t, errOf(f.People.Add(t.Context(), c.ID, people.NewUser{Email: added, Role: people.RoleMember}, record.Operator())))
		checkError(t, "added by an operator", accept(t.Context(), f.Store, token, password), value.ErrInvitationInvalid)
	})
}

func TestInvitationOfADisabledAccount(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		_, token := f.invite(t, c, newEmail(), people.RoleMember)
		// As an operator's SQL does, which does not end invitations.
		f.exec(t, "UPDATE accounts SET disabled_at = ? WHERE id = ?", f.clock.Now(), c.ID)
		checkError(t, "page", errOf(f.Invitations.Find(t.Context(), token)), value.ErrSignInDisabled)
		checkError(t, "join", accept(t.Context(), f.Store, token, password), value.ErrSignInDisabled)
	})
}

func TestGuessesOfInvitationsAreLimited(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		_, token := f.invite(t, c, newEmail(), people.RoleMember)
		for range 10 {
			checkError(t, "a guess", accept(t.Context(), f.Store, "guess", password), value.ErrInvitationInvalid)
		}
		var limited *value.SignInLimitError
		if err := accept(t.Context(), f.open(t, models.Options{}), token, password); !errors.As(err, &limited) {
			t.Errorf("after ten guesses: %v", err)
		}
		// Guesses of tokens do not stop sign-in.
		signIn(t, f.Store, c.user.Email, password, browser.Address, nil)
		f.clock.Advance(time.Minute)
		must(t, accept(t.Context(), f.Store, token, password))
	})
}
