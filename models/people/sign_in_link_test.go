package people_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

func (f *fixture) link(t *testing.T, c customer, user people.User) string {
	t.Helper()
	link, err := f.SignIn.CreateLink(t.Context(), c.ID, user.ID, record.Operator())
	must(t, err)
	if left := link.ExpiresAt.Sub(f.Clock.Now()); left != 5*time.Minute || link.UserID != user.ID {
		t.Errorf("it expires in %s and is of %s", left, link.UserID)
	}
	return link.Token
}

func TestSignInLinkWorksOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		member := f.Member(t, c, people.RoleMember)
		token := f.link(t, c, member)
		for range 2 { // looking at the page does not use the link
			if user, err := f.SignIn.LinkUser(t.Context(), token); err != nil || user.ID != member.ID {
				t.Errorf("%+v, %v", user, err)
			}
		}
		const clients = 8
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		sessionTokens := make([]string, clients)
		used, errs := modelstest.AtOnce(clients, func(i int) error {
			signedIn, err := stores[i%2].SignIn.UseLink(t.Context(), token, modelstest.Browser)
			sessionTokens[i] = signedIn.Token
			return err
		})
		if used != 1 {
			t.Fatalf("%d of %d clients used the link, errors %v", used, clients, errs)
		}
		checkErrors(t, "the others", errs, value.ErrLinkInvalid)
		session, err := f.Sessions.Find(t.Context(), strings.Join(sessionTokens, ""), modelstest.Browser)
		if err != nil || session.UserID != member.ID || session.AccountID != c.ID {
			t.Errorf("%+v, %v", session, err)
		}
		f.CheckCount(t, 1, "SELECT count(*) FROM sessions")
		checkError(t, "page", errOf(f.SignIn.LinkUser(t.Context(), token)), value.ErrLinkInvalid)
	})
}

func TestSignInLinkExpires(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		token := f.link(t, c, c.User)
		f.Clock.Advance(5*time.Minute - time.Second)
		must(t, errOf(f.SignIn.LinkUser(t.Context(), token)))
		f.Clock.Advance(time.Second)
		checkError(t, "page", errOf(f.SignIn.LinkUser(t.Context(), token)), value.ErrLinkInvalid)
		_, err := f.SignIn.UseLink(t.Context(), token, modelstest.Browser)
		checkError(t, "use", err, value.ErrLinkInvalid)
		f.Clock.Advance(time.Second)
		must(t, f.Erasures.Purge(t.Context()))
		f.CheckCount(t, 0, "SELECT count(*) FROM sign_in_links")
	})
}

func TestSignInLinkOfSomeoneDisabledOrRemoved(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		member := f.Member(t, c, people.RoleMember)
		token := f.link(t, c, member)
		create := func(accountID people.Account, user people.User) error {
			return errOf(f.SignIn.CreateLink(t.Context(), accountID.ID, user.ID, record.Operator()))
		}
		checkError(t, "of another account", create(other.Account, member), value.ErrUserNotFound)
		// As an operator's SQL does, which does not end links.
		f.Exec(t, "UPDATE accounts SET disabled_at = ? WHERE id = ?", f.Clock.Now(), c.ID)
		checkError(t, "account disabled, page", errOf(f.SignIn.LinkUser(t.Context(), token)), value.ErrSignInDisabled)
		_, err := f.SignIn.UseLink(t.Context(), token, modelstest.Browser)
		checkError(t, "account disabled, use", err, value.ErrSignInDisabled)
		checkError(t, "account disabled, create", create(c.Account, member), value.ErrSignInDisabled)
		f.Exec(t, "UPDATE accounts SET disabled_at = NULL WHERE id = ?", c.ID)
		must(t, errOf(f.SignIn.LinkUser(t.Context(), token)))
		must(t, f.People.Remove(t.Context(), c.ID, member.ID, record.Operator()))
		_, err = f.SignIn.UseLink(t.Context(), token, modelstest.Browser)
		checkError(t, "removed, use", err, value.ErrLinkInvalid)
		checkError(t, "removed, create", create(c.Account, member), value.ErrUserNotFound)
	})
}

func TestNewPasswordEndsSignInLinks(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		session := f.SignedIn(t, c)
		kept := f.link(t, other, other.User)
		changed := f.link(t, c, c.User)
		must(t, errOf(f.Credentials.ChangePassword(ctx, session, password, newPassword, c.Actor)))
		checkError(t, "after a change", errOf(f.SignIn.LinkUser(ctx, changed)), value.ErrLinkInvalid)
		reset := f.link(t, c, c.User)
		must(t, f.Credentials.ResetPassword(ctx, c.User.Email, password))
		_, err := f.SignIn.UseLink(ctx, reset, modelstest.Browser)
		checkError(t, "after a reset", err, value.ErrLinkInvalid)
		must(t, errOf(f.SignIn.LinkUser(ctx, kept)))
	})
}

func TestUserHasTenSignInLinks(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		first := f.link(t, c, c.User)
		for range 10 {
			f.Clock.Advance(time.Millisecond)
			must(t, errOf(f.SignIn.LinkUser(t.Context(), first)))
			f.link(t, c, c.User)
		}
		checkError(t, "the oldest of eleven links", errOf(f.SignIn.LinkUser(t.Context(), first)), value.ErrLinkInvalid)
		f.CheckCount(t, 10, "SELECT count(*) FROM sign_in_links")
	})
}

func TestSignInLinkForAnEmail(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		create := func(accountID uuid.UUID, email string, role people.Role) (people.SignInLink, error) {
			return f.SignIn.CreateLinkFor(ctx, accountID, people.NewUser{Email: email, Role: role}, record.Operator())
		}
		email := modelstest.NewEmail()
		// Requests at the same time add the user once.
		var links [4]people.SignInLink
		made, errs := modelstest.AtOnce(len(links), func(i int) (err error) {
			links[i], err = create(c.ID, " "+strings.ToUpper(email), people.RoleMember)
			return err
		})
		if made != len(links) {
			t.Fatal(errs)
		}
		for _, link := range links {
			user := modelstest.Value(f.SignIn.LinkUser(ctx, link.Token))(t)
			if user.ID != links[0].UserID || user.ID != link.UserID || user.EmailProvenAt == nil {
				t.Errorf("%+v of %+v", link, user)
			}
			if user.AccountID != c.ID || user.Role != people.RoleMember {
				t.Errorf("%+v is another account's, or has another role", user)
			}
		}
		f.CheckCount(t, 1, "SELECT count(*) FROM activities WHERE action = 'user.added' AND subject_id = ?", links[0].UserID)
		must(t, errOf(create(c.ID, email, people.RoleOwner)))
		if user := modelstest.Value(f.People.Find(ctx, c.ID, links[0].UserID))(t); user.Role != people.RoleMember {
			t.Error("a link changed the role")
		}
		checkError(t, "another account", errOf(create(other.ID, email, people.RoleMember)), value.ErrEmailTaken)
		checkError(t, "no account", errOf(create(uuid.New(), modelstest.NewEmail(), people.RoleMember)), value.ErrAccountNotFound)
		must(t, f.People.SetDisabled(ctx, email, true))
		checkError(t, "a disabled user", errOf(create(c.ID, email, people.RoleMember)), value.ErrSignInDisabled)
		must(t, f.People.Remove(ctx, c.ID, links[0].UserID, record.Operator()))
		if again := modelstest.Value(create(c.ID, email, people.RoleOwner))(t); again.UserID == links[0].UserID {
			t.Error("a link of a removed user")
		}
		f.Exec(t, "UPDATE accounts SET disabled_at = ? WHERE id = ?", f.Clock.Now(), c.ID)
		late := modelstest.NewEmail()
		checkError(t, "a disabled account", errOf(create(c.ID, late, people.RoleMember)), value.ErrSignInDisabled)
		checkError(t, "its new user", errOf(f.People.FindByEmail(ctx, late)), value.ErrUserNotFound)
	})
}
