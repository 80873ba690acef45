package people_test

import (
	"errors"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

func TestRenewedInvitationHasOneLink(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		old, ended := f.Invite(t, c, modelstest.NewEmail(), people.RoleMember)
		f.Clock.Advance(6 * value.Day)
		renew := func(c customer) error {
			_, _, err := f.Invitations.Renew(ctx, c.ID, old.ID, c.Actor)
			return err
		}
		checkError(t, "another account's", renew(other), value.ErrInvitationNotFound)
		renewed, token, err := f.Invitations.Renew(ctx, c.ID, old.ID, c.Actor)
		must(t, err)
		if left := renewed.ExpiresAt.Sub(f.Clock.Now()); left != 7*value.Day || renewed.ID != old.ID {
			t.Errorf("renewed: %+v, expires in %s", renewed, left)
		}
		checkError(t, "the old link", modelstest.Accept(ctx, f.Store, ended, password), value.ErrInvitationInvalid)
		must(t, modelstest.Accept(ctx, f.Store, token, password))
		checkError(t, "an accepted one", renew(c), value.ErrInvitationNotFound)
	})
}

func TestInvitationAddsOneUser(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, email := f.Customer(t), modelstest.NewEmail()
		invitation, token := f.Invite(t, c, " "+email+" ", people.RoleMember)
		if left := invitation.ExpiresAt.Sub(f.Clock.Now()); left != 7*value.Day {
			t.Errorf("it expires in %s", left)
		}
		for range 2 { // looking at the page does not use the invitation
			found, err := f.Invitations.Find(t.Context(), token)
			if err != nil || found.Email != email || found.AccountName != c.Name || found.Role != people.RoleMember {
				t.Errorf("%+v, %v", found, err)
			}
		}
		for _, guessable := range []string{"", "short", email, c.Name + c.Name + c.Name} {
			checkInvalid(t, guessable, modelstest.Accept(t.Context(), f.Store, token, guessable), "password")
		}
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		used, errs := modelstest.AtOnce(4, func(i int) error { return modelstest.Accept(t.Context(), stores[i%2], token, password) })
		if used != 1 {
			t.Fatalf("%d clients used the invitation, errors %v", used, errs)
		}
		checkErrors(t, "the others", errs, value.ErrInvitationInvalid)
		modelstest.SignIn(t, f.Store, email, password, modelstest.Address(1), nil)
		users := modelstest.Value(f.People.List(t.Context(), c.ID, value.Page{After: c.User.ID, Limit: 10}))(t)
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
			{record.ActionSignedIn, email}, {record.ActionInvitationAccepted, email}, {record.ActionInvitationCreated, c.User.Email},
		} {
			if got := f.Activities(t, c)[i]; got.Action != want.action || got.ActorName != want.actor {
				t.Errorf("activity %d is %s by %s, want %v", i, got.Action, got.ActorName, want)
			}
		}
	})
}

func TestInvitationEnds(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		cancelled, cancelledToken := f.Invite(t, c, modelstest.NewEmail(), people.RoleMember)
		checkError(t, "cancelled by another account", errOf(f.Invitations.Cancel(t.Context(), other.ID, cancelled.ID, other.Actor)), value.ErrInvitationNotFound)
		got, err := f.Invitations.Cancel(t.Context(), c.ID, cancelled.ID, c.Actor)
		if err != nil || got.Email != cancelled.Email {
			t.Errorf("%+v, %v", got, err)
		}
		checkError(t, "cancelled twice", errOf(f.Invitations.Cancel(t.Context(), c.ID, cancelled.ID, c.Actor)), value.ErrInvitationNotFound)
		checkError(t, "cancelled", modelstest.Accept(t.Context(), f.Store, cancelledToken, password), value.ErrInvitationInvalid)

		expired, expiredToken := f.Invite(t, c, modelstest.NewEmail(), people.RoleMember)
		f.Clock.Advance(7*value.Day - time.Second)
		must(t, errOf(f.Invitations.Find(t.Context(), expiredToken)))
		f.Clock.Advance(time.Second)
		checkError(t, "expired", modelstest.Accept(t.Context(), f.Store, expiredToken, password), value.ErrInvitationExpired)
		checkError(t, "cancelled after it expired", errOf(f.Invitations.Cancel(t.Context(), c.ID, expired.ID, c.Actor)), value.ErrInvitationNotFound)
		if pending, err := f.Invitations.Pending(t.Context(), c.ID); err != nil || len(pending) != 0 {
			t.Errorf("%v, %v", pending, err)
		}
		f.Invite(t, c, expired.Email, people.RoleMember) // replaces the expired one
		f.Clock.Advance(8 * value.Day)
		must(t, f.Erasures.Purge(t.Context()))
		f.CheckCount(t, 0, "SELECT count(*) FROM invitations")
	})
}

// Otherwise a removed owner could return with an invitation that nobody has used.
func TestInvitationEndsWithTheRightsOfItsInviter(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		for how, end := range map[string]func(people.User) error{
			"removed": func(u people.User) error { return f.People.Remove(t.Context(), c.ID, u.ID, c.Actor) },
			"made a member": func(u people.User) error {
				return errOf(f.People.SetRole(t.Context(), c.ID, u.ID, people.RoleMember, c.Actor))
			},
			"disabled": func(u people.User) error { return f.People.SetDisabled(t.Context(), u.Email, true) },
		} {
			inviter := f.Member(t, c, people.RoleOwner)
			_, token, err := f.Invitations.Create(t.Context(), c.ID, modelstest.NewEmail(), people.RoleOwner, record.UserActor(inviter.ID, ""))
			must(t, err)
			must(t, end(inviter))
			checkError(t, how, errOf(f.Invitations.Find(t.Context(), token)), value.ErrInvitationInvalid)
			_, _, err = f.Invitations.Create(t.Context(), c.ID, modelstest.NewEmail(), people.RoleOwner, record.UserActor(inviter.ID, ""))
			checkError(t, how+", another one", err, value.ErrNotOwner)
		}
	})
}

func TestInvitationsAreRefused(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		create := func(email string, role people.Role, actor record.Actor) error {
			_, _, err := f.Invitations.Create(t.Context(), c.ID, email, role, actor)
			return err
		}
		email := modelstest.NewEmail()
		f.Invite(t, c, email, people.RoleMember)
		checkError(t, "invited before", create(email, people.RoleOwner, c.Actor), value.ErrEmailInvited)
		checkError(t, "user of another account", create(other.User.Email, people.RoleMember, c.Actor), value.ErrEmailTaken)
		member := f.Member(t, c, people.RoleMember)
		checkInvalid(t, "not an email", create("eve", people.RoleMember, c.Actor), "email")
		checkInvalid(t, "no role", create(modelstest.NewEmail(), "admin", c.Actor), "role")
		checkInvalid(t, "user of this account", create(member.Email, people.RoleMember, c.Actor), "email")
		for who, actor := range map[string]record.Actor{
			"a member": record.UserActor(member.ID, ""), "an owner of another account": other.Actor, "a visitor": {Kind: record.ActorVisitor},
		} {
			checkError(t, who, create(modelstest.NewEmail(), people.RoleMember, actor), value.ErrNotOwner)
		}
		full := make([]people.Invitation, value.MaxInvitations-1)
		for i := range full {
			email := modelstest.NewEmail()
			hash := value.HashEmail(email)
			full[i] = people.Invitation{
				ID: newID(), AccountID: c.ID, Email: email, EmailHash: hash, Role: people.RoleMember, TokenHash: hash,
				InviterID: &c.User.ID, CreatedAt: f.Clock.Now(), ExpiresAt: f.Clock.Now().Add(value.Day),
			}
		}
		must(t, errOf(f.DB.NewInsert().Model(&full).Exec(t.Context())))
		checkError(t, "the 101st", create(modelstest.NewEmail(), people.RoleMember, c.Actor), value.ErrInvitationLimit)
		if pending, err := f.Invitations.Pending(t.Context(), c.ID); err != nil || len(pending) != value.MaxInvitations {
			t.Errorf("%d invitations, %v", len(pending), err)
		}
	})
}

func TestInvitationOfAPersonWhoBecameAUser(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other, email := f.Customer(t), f.Customer(t), modelstest.NewEmail()
		_, token := f.Invite(t, c, email, people.RoleMember)
		_, elsewhere := f.Invite(t, other, email, people.RoleMember)
		must(t, modelstest.Accept(t.Context(), f.Store, elsewhere, password))
		checkError(t, "joined another account", modelstest.Accept(t.Context(), f.Store, token, password), value.ErrEmailTaken)

		added := modelstest.NewEmail()
		_, token = f.Invite(t, c, added, people.RoleMember)
		must(t, errOf(f.People.Add(t.Context(), c.ID, people.NewUser{Email: added, Role: people.RoleMember}, record.Operator())))
		checkError(t, "added by an operator", modelstest.Accept(t.Context(), f.Store, token, password), value.ErrInvitationInvalid)
	})
}

func TestInvitationOfADisabledAccount(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		_, token := f.Invite(t, c, modelstest.NewEmail(), people.RoleMember)
		// As an operator's SQL does, which does not end invitations.
		f.Exec(t, "UPDATE accounts SET disabled_at = ? WHERE id = ?", f.Clock.Now(), c.ID)
		checkError(t, "page", errOf(f.Invitations.Find(t.Context(), token)), value.ErrSignInDisabled)
		checkError(t, "join", modelstest.Accept(t.Context(), f.Store, token, password), value.ErrSignInDisabled)
	})
}

func TestGuessesOfInvitationsAreLimited(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		_, token := f.Invite(t, c, modelstest.NewEmail(), people.RoleMember)
		for range 10 {
			checkError(t, "a guess", modelstest.Accept(t.Context(), f.Store, "guess", password), value.ErrInvitationInvalid)
		}
		var limited *value.SignInLimitError
		if err := modelstest.Accept(t.Context(), f.Open(t, models.Options{}), token, password); !errors.As(err, &limited) {
			t.Errorf("after ten guesses: %v", err)
		}
		// Guesses of tokens do not stop sign-in.
		modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Browser.Address, nil)
		f.Clock.Advance(time.Minute)
		must(t, modelstest.Accept(t.Context(), f.Store, token, password))
	})
}
