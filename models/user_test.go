package models_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/models"
)

// member adds a user without a password to the customer's account.
func (f *fixture) member(t *testing.T, c customer, role models.Role) models.User {
	t.Helper()
	user, err := f.People.Add(t.Context(), c.ID, models.NewUser{Email: uuid.NewString() + "@example.com", Role: role}, models.Operator())
	must(t, err)
	return user
}

func actionsOf(activities []models.Activity) (actions []models.Action) {
	for _, activity := range activities {
		actions = append(actions, activity.Action)
	}
	return actions
}

func TestUsersAreAddedAndListed(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.customer(t), f.customer(t)
		added, err := f.People.Add(t.Context(), c.ID, models.NewUser{Email: " Bob@example.com ", Password: password, Role: models.RoleMember}, models.Operator())
		if err != nil || added.Email != "Bob@example.com" || added.Role != models.RoleMember || added.AccountID != c.ID {
			t.Fatalf("%+v, %v", added, err)
		}
		signIn(t, f.Store, "bob@example.com", password, address(1), nil)
		users, err := f.People.List(t.Context(), c.ID, models.Page{Limit: 1})
		if err != nil || len(users.Items) != 1 || users.Next != c.user.ID || users.Items[0].ID != c.user.ID || users.Items[0].Role != models.RoleOwner {
			t.Errorf("%+v, %v", users, err)
		}
		users, err = f.People.List(t.Context(), c.ID, models.Page{After: c.user.ID, Limit: 1})
		if err != nil || len(users.Items) != 1 || users.Next != uuid.Nil || users.Items[0].ID != added.ID {
			t.Errorf("%+v, %v", users, err)
		}
		if actions := actionsOf(f.activities(t, c)); !slices.Equal(actions, []models.Action{models.ActionUserAdded}) {
			t.Errorf("activities %v", actions)
		}
		for _, email := range []string{"BOB@example.com", other.user.Email} {
			_, err := f.People.Add(t.Context(), c.ID, models.NewUser{Email: email, Role: models.RoleMember}, models.Operator())
			checkError(t, email, err, models.ErrEmailTaken)
		}
		checkError(t, "no account", errOf(f.People.Add(t.Context(), newID(), models.NewUser{Email: "eve@example.com", Role: models.RoleMember}, models.Operator())), models.ErrAccountNotFound)
		for field, n := range map[string]models.NewUser{
			"email":    {Email: "eve", Role: models.RoleMember},
			"role":     {Email: "eve@example.com", Role: "admin"},
			"password": {Email: "eve@example.com", Role: models.RoleMember, Password: "short"},
		} {
			_, err := f.People.Add(t.Context(), c.ID, n, models.Operator())
			if invalid := (*models.InvalidError)(nil); !errors.As(err, &invalid) || invalid.Field != field {
				t.Errorf("%s: %v", field, err)
			}
		}
	})
}

func TestUserWithoutAPasswordIsRefusedLikeAWrongPassword(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		user := f.member(t, f.customer(t), models.RoleMember)
		for _, guess := range []string{"", password, user.PasswordHash, strings.Repeat("\x00", 32)} {
			signIn(t, f.Store, user.Email, guess, address(1), models.ErrWrongCredentials)
		}
		must(t, f.Credentials.ResetPassword(t.Context(), user.Email, password))
		signIn(t, f.Store, user.Email, password, address(1), nil)
	})
}

func TestRemovedUserIsSignedOutAndItsEmailIsFree(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.customer(t), f.customer(t)
		key, secret := f.key(t, c)
		f.member(t, c, models.RoleOwner)
		token := f.session(t, c)
		verified, err := f.SignIn.VerifyPassword(t.Context(), c.user.Email, password, browser)
		must(t, err)
		checkError(t, "as another account", f.People.Remove(t.Context(), other.ID, c.user.ID, models.Operator()), models.ErrUserNotFound)
		must(t, f.People.Remove(t.Context(), c.ID, c.user.ID, models.Operator()))
		checkError(t, "session", errOf(f.Sessions.Find(t.Context(), token, browser)), models.ErrSessionNotFound)
		checkError(t, "a sign-in in flight", errOf(f.Sessions.Create(t.Context(), verified, browser)), models.ErrWrongCredentials)
		signIn(t, f.Store, c.user.Email, password, address(1), models.ErrWrongCredentials)
		use(t, f.Store, secret, 1)
		checkError(t, "again", f.People.Remove(t.Context(), c.ID, c.user.ID, models.Operator()), models.ErrUserNotFound)
		activities := f.activities(t, c)
		if newest := activities[0]; newest.Action != models.ActionUserRemoved || newest.Label != c.user.Email || newest.ActorName != "Operator" {
			t.Errorf("%+v", newest)
		}
		for _, activity := range activities {
			if activity.Action == models.ActionKeyGenerated && (activity.ActorName != c.user.Email || *activity.SubjectID != key.ID) {
				t.Errorf("the removed user is not named: %+v", activity)
			}
		}
		must(t, errOf(f.People.Add(t.Context(), other.ID, models.NewUser{Email: c.user.Email, Role: models.RoleMember}, models.Operator())))
	})
}

func TestLastOwnerCannotBeRemoved(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		member := f.member(t, c, models.RoleMember)
		checkError(t, "beside a member", f.People.Remove(t.Context(), c.ID, c.user.ID, models.Operator()), models.ErrLastOwner)
		must(t, f.People.Remove(t.Context(), c.ID, member.ID, models.Operator()))
		disabled := f.member(t, c, models.RoleOwner)
		must(t, f.People.SetDisabled(t.Context(), disabled.Email, true))
		checkError(t, "beside a disabled owner", f.People.Remove(t.Context(), c.ID, c.user.ID, models.Operator()), models.ErrLastOwner)
		must(t, f.People.SetDisabled(t.Context(), disabled.Email, false))

		owners := []uuid.UUID{c.user.ID, disabled.ID}
		_, errs := atOnce(len(owners), func(i int) error {
			return f.People.Remove(t.Context(), c.ID, owners[i], models.Operator())
		})
		users, err := f.People.List(t.Context(), c.ID, models.Page{Limit: 10})
		if err != nil || len(users.Items) != 1 || len(errs) != 1 || !errors.Is(errs[0], models.ErrLastOwner) {
			t.Errorf("two removals at once leave %v, with the errors %v, %v", users, errs, err)
		}
	})
}

func TestDisabledUserIsSignedOutUntilTheNextSignIn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		token := f.session(t, c)
		for range 2 {
			must(t, f.People.SetDisabled(t.Context(), strings.ToUpper(c.user.Email), true))
		}
		checkError(t, "session", errOf(f.Sessions.Find(t.Context(), token, browser)), models.ErrSessionNotFound)
		checkError(t, "a sign-in in flight", errOf(f.Sessions.Create(t.Context(), c.user, browser)), models.ErrWrongCredentials)
		signIn(t, f.Store, c.user.Email, password, address(1), models.ErrSignInDisabled)
		for range 2 {
			must(t, f.People.SetDisabled(t.Context(), c.user.Email, false))
		}
		checkError(t, "the old session", errOf(f.Sessions.Find(t.Context(), token, browser)), models.ErrSessionNotFound)
		signIn(t, f.Store, c.user.Email, password, address(1), nil)
		want := []models.Action{models.ActionUserEnabled, models.ActionUserDisabled, models.ActionSignedIn} // once each
		if actions := actionsOf(f.activities(t, c)); !slices.Equal(actions, want) {
			t.Errorf("activities %v, want %v", actions, want)
		}
		checkError(t, "unknown", f.People.SetDisabled(t.Context(), "nobody@example.com", true), models.ErrUserNotFound)
	})
}
