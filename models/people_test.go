package models_test

import (
	"crypto/sha256"
	"errors"
	"slices"
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

// member adds a user without a password to the customer's account.
func (f *fixture) member(t *testing.T, c customer, role people.Role) people.User {
	t.Helper()
	user := modelstest.Value(f.People.Add(t.Context(), c.ID, people.NewUser{Email: uuid.NewString() + "@example.com", Role: role}, record.Operator()))(t)
	return user
}

// owner adds an owner with [password].
func (f *fixture) owner(t *testing.T, c customer) people.User {
	t.Helper()
	user := f.member(t, c, people.RoleOwner)
	f.exec(t, "UPDATE users SET password_hash = ? WHERE id = ?", cheapHash(password), user.ID)
	return user
}

func actionsOf(activities []record.Activity) (actions []record.Action) {
	for _, activity := range activities {
		actions = append(actions, activity.Action)
	}
	return actions
}

func TestUsersAreAddedAndListed(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.customer(t), f.customer(t)
		added, err := f.People.Add(t.Context(), c.ID, people.NewUser{Email: " Bob@example.com ", Password: password, Role: people.RoleMember}, record.Operator())
		if err != nil || added.Email != "Bob@example.com" || added.Role != people.RoleMember || added.AccountID != c.ID {
			t.Fatalf("%+v, %v", added, err)
		}
		signIn(t, f.Store, "bob@example.com", password, address(1), nil)
		users := modelstest.Value(f.People.List(t.Context(), c.ID, value.Page{Limit: 1}))(t)
		if len(users.Items) != 1 || users.Next != c.user.ID {
			t.Fatalf("%+v", users)
		}
		if first := users.Items[0]; first.ID != c.user.ID || first.Role != people.RoleOwner {
			t.Errorf("%+v", first)
		}
		users, err = f.People.List(t.Context(), c.ID, value.Page{After: c.user.ID, Limit: 1})
		if err != nil || len(users.Items) != 1 || users.Next != uuid.Nil || users.Items[0].ID != added.ID {
			t.Errorf("%+v, %v", users, err)
		}
		if actions := actionsOf(f.activities(t, c)); !slices.Equal(actions, []record.Action{record.ActionUserAdded}) {
			t.Errorf("activities %v", actions)
		}
		for _, email := range []string{"BOB@example.com", other.user.Email} {
			_, err := f.People.Add(t.Context(), c.ID, people.NewUser{Email: email, Role: people.RoleMember}, record.Operator())
			checkError(t, email, err, value.ErrEmailTaken)
		}
		checkError(t, "no account", errOf(f.People.Add(t.Context(), newID(), people.NewUser{Email: "eve@example.com", Role: people.RoleMember}, record.Operator())), value.ErrAccountNotFound)
		for field, n := range map[string]people.NewUser{
			"email":    {Email: "eve", Role: people.RoleMember},
			"role":     {Email: "eve@example.com", Role: "admin"},
			"password": {Email: "eve@example.com", Role: people.RoleMember, Password: "short"},
		} {
			checkInvalid(t, field, errOf(f.People.Add(t.Context(), c.ID, n, record.Operator())), field)
		}
	})
}

func TestUserWithoutAPasswordIsRefusedLikeAWrongPassword(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		user := f.member(t, f.customer(t), people.RoleMember)
		for _, guess := range []string{"", password, user.PasswordHash, strings.Repeat("\x00", 32)} {
			signIn(t, f.Store, user.Email, guess, address(1), value.ErrWrongCredentials)
		}
		must(t, f.Credentials.ResetPassword(t.Context(), user.Email, password))
		signIn(t, f.Store, user.Email, password, address(1), nil)
	})
}

func TestRemovedUserIsSignedOutAndItsEmailIsFree(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.customer(t), f.customer(t)
		key, secret := f.key(t, c)
		f.owner(t, c)
		token := f.session(t, c)
		verified := modelstest.Value(f.SignIn.VerifyPassword(t.Context(), c.user.Email, password, browser))(t)
		checkError(t, "as another account", f.People.Remove(t.Context(), other.ID, c.user.ID, record.Operator()), value.ErrUserNotFound)
		must(t, f.People.Remove(t.Context(), c.ID, c.user.ID, record.Operator()))
		checkError(t, "session", errOf(f.Sessions.Find(t.Context(), token, browser)), value.ErrSessionNotFound)
		checkError(t, "a sign-in in flight", errOf(f.SignIn.Start(t.Context(), verified, browser)), value.ErrWrongCredentials)
		signIn(t, f.Store, c.user.Email, password, address(1), value.ErrWrongCredentials)
		use(t, f.Store, secret, 1)
		checkError(t, "again", f.People.Remove(t.Context(), c.ID, c.user.ID, record.Operator()), value.ErrUserNotFound)
		activities := f.activities(t, c)
		if newest := activities[0]; newest.Action != record.ActionUserRemoved || newest.Label != c.user.Email || newest.ActorName != "Operator" {
			t.Errorf("%+v", newest)
		}
		for _, activity := range activities {
			if activity.Action == record.ActionKeyGenerated && (activity.ActorName != c.user.Email || *activity.SubjectID != key.ID) {
				t.Errorf("the removed user is not named: %+v", activity)
			}
		}
		must(t, errOf(f.People.Add(t.Context(), other.ID, people.NewUser{Email: c.user.Email, Role: people.RoleMember}, record.Operator())))
	})
}

func TestLastOwnerCannotBeRemoved(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		member := f.member(t, c, people.RoleMember)
		checkError(t, "beside a member", f.People.Remove(t.Context(), c.ID, c.user.ID, record.Operator()), value.ErrLastOwner)
		must(t, f.People.Remove(t.Context(), c.ID, member.ID, record.Operator()))
		disabled := f.owner(t, c)
		must(t, f.People.SetDisabled(t.Context(), disabled.Email, true))
		checkError(t, "beside a disabled owner", f.People.Remove(t.Context(), c.ID, c.user.ID, record.Operator()), value.ErrLastOwner)
		checkError(t, "disabled", f.People.SetDisabled(t.Context(), c.user.Email, true), value.ErrLastOwner)
		must(t, f.People.SetDisabled(t.Context(), disabled.Email, false))

		owners := []uuid.UUID{c.user.ID, disabled.ID}
		_, errs := atOnce(len(owners), func(i int) error {
			return f.People.Remove(t.Context(), c.ID, owners[i], record.Operator())
		})
		users, err := f.People.List(t.Context(), c.ID, value.Page{Limit: 10})
		if err != nil || len(users.Items) != 1 || len(errs) != 1 || !errors.Is(errs[0], value.ErrLastOwner) {
			t.Errorf("two removals at once leave %v, with the errors %v, %v", users, errs, err)
		}
	})
}

// An owner without a password, a passkey or an identity cannot take over the account.
func TestLastOwnerWhoCanSignInStays(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, off := t.Context(), f.open(t, models.Options{PasswordsOff: true})
		leave := map[string]func(s *models.Store, c customer) error{
			"remove": func(s *models.Store, c customer) error { return s.People.Remove(ctx, c.ID, c.user.ID, c.actor) },
			"make member": func(s *models.Store, c customer) error {
				return errOf(s.People.SetRole(ctx, c.ID, c.user.ID, people.RoleMember, c.actor))
			},
		}
		for name, leave := range leave {
			c := f.customer(t)
			other := f.member(t, c, people.RoleOwner)
			f.link(t, c, other) // expires
			checkError(t, name, leave(f.Store, c), value.ErrLastOwner)
			checkError(t, "remove the other", f.People.Remove(ctx, c.ID, other.ID, c.actor), nil)
		}
		for name, way := range map[string]func(customer, people.User){
			"password": func(_ customer, u people.User) { must(t, f.Credentials.ResetPassword(ctx, u.Email, newPassword)) },
			"identity": func(_ customer, u people.User) {
				must(t, errOf(f.SignIn.WithIdentity(ctx, people.Identity{Issuer: "https://a.example", Subject: u.Email, Email: u.Email, EmailVerified: true}, true, browser)))
			},
			"passkey": func(c customer, u people.User) {
				signedIn := modelstest.Value(f.SignIn.UseLink(ctx, f.link(t, c, u), browser))(t)
				session := modelstest.Value(f.Sessions.Find(ctx, signedIn.Token, browser))(t)
				f.passkey(t, session, record.UserActor(u.ID, ""))
			},
		} {
			for leaving, leave := range leave {
				c, withPasskey := f.customer(t), f.customer(t)
				other := f.member(t, c, people.RoleOwner)
				session := modelstest.Value(f.Sessions.Find(ctx, f.session(t, withPasskey), browser))(t)
				f.passkey(t, session, withPasskey.actor)
				beside := f.member(t, withPasskey, people.RoleOwner)
				way(c, other)
				way(withPasskey, beside)
				var want error
				if name == "password" {
					want = value.ErrLastOwner
				}
				checkError(t, leaving+" beside an owner with a "+name+" while passwords are off", leave(off, withPasskey), want)
				checkError(t, leaving+" beside an owner with a "+name, leave(f.Store, c), nil)
			}
		}
	})
}

func TestDisabledUserIsSignedOutUntilTheNextSignIn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		f.owner(t, c)
		token := f.session(t, c)
		for range 2 {
			must(t, f.People.SetDisabled(t.Context(), strings.ToUpper(c.user.Email), true))
		}
		checkError(t, "session", errOf(f.Sessions.Find(t.Context(), token, browser)), value.ErrSessionNotFound)
		checkError(t, "a sign-in in flight", errOf(f.SignIn.Start(t.Context(), c.user, browser)), value.ErrWrongCredentials)
		signIn(t, f.Store, c.user.Email, password, address(1), value.ErrSignInDisabled)
		for range 2 {
			must(t, f.People.SetDisabled(t.Context(), c.user.Email, false))
		}
		checkError(t, "the old session", errOf(f.Sessions.Find(t.Context(), token, browser)), value.ErrSessionNotFound)
		signIn(t, f.Store, c.user.Email, password, address(1), nil)
		// Each is recorded once.
		want := []record.Action{record.ActionUserEnabled, record.ActionUserDisabled, record.ActionSignedIn, record.ActionUserAdded}
		if actions := actionsOf(f.activities(t, c)); !slices.Equal(actions, want) {
			t.Errorf("activities %v, want %v", actions, want)
		}
		checkError(t, "unknown", f.People.SetDisabled(t.Context(), "nobody@example.com", true), value.ErrUserNotFound)
	})
}

func TestRoleIsChanged(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.customer(t), f.customer(t)
		member := f.member(t, c, people.RoleMember)
		must(t, f.Credentials.ResetPassword(t.Context(), member.Email, password))
		if found, err := f.People.FindByEmail(t.Context(), " "+strings.ToUpper(member.Email)); err != nil || found.ID != member.ID {
			t.Errorf("found %+v, %v", found, err)
		}
		checkError(t, "unknown", errOf(f.People.FindByEmail(t.Context(), "nobody@example.com")), value.ErrUserNotFound)
		set := func(id uuid.UUID, role people.Role, actor record.Actor) error {
			return errOf(f.People.SetRole(t.Context(), c.ID, id, role, actor))
		}
		checkError(t, "by the member", set(member.ID, people.RoleOwner, record.UserActor(member.ID, "")), value.ErrNotOwner)
		checkError(t, "by another account's owner", set(member.ID, people.RoleOwner, other.actor), value.ErrNotOwner)
		checkError(t, "of another account's user", set(other.user.ID, people.RoleMember, c.actor), value.ErrUserNotFound)
		checkError(t, "of the last owner", set(c.user.ID, people.RoleMember, c.actor), value.ErrLastOwner)
		checkInvalid(t, "unknown role", set(member.ID, "admin", c.actor), "role")
		token := f.session(t, c)
		for range 2 {
			must(t, set(member.ID, people.RoleOwner, c.actor))
		}
		must(t, set(c.user.ID, people.RoleMember, c.actor))
		// The role is that of the time of the request.
		if session, err := f.open(t, models.Options{}).Sessions.Find(t.Context(), token, browser); err != nil || session.Role != people.RoleMember {
			t.Errorf("%+v, %v", session, err)
		}
		checkError(t, "by a former owner", set(c.user.ID, people.RoleOwner, c.actor), value.ErrNotOwner)
		if got := actionsOf(f.activities(t, c))[:3]; got[0] != record.ActionUserMadeMember || got[1] != record.ActionUserMadeOwner || got[2] != record.ActionSignedIn {
			t.Errorf("activities %v", got)
		}
	})
}

// Each of the two has loaded the page, and both remove the other at once.
func TestTwoOwnersRemoveEachOther(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		for name, remove := range map[string]func(s *models.Store, c customer, id uuid.UUID, actor record.Actor) error{
			"remove": func(s *models.Store, c customer, id uuid.UUID, actor record.Actor) error {
				return s.People.Remove(t.Context(), c.ID, id, actor)
			},
			"make a member": func(s *models.Store, c customer, id uuid.UUID, actor record.Actor) error {
				return errOf(s.People.SetRole(t.Context(), c.ID, id, people.RoleMember, actor))
			},
		} {
			stores := []*models.Store{f.Store, f.open(t, models.Options{})}
			for range 5 {
				c := f.customer(t)
				owners := []uuid.UUID{c.user.ID, f.owner(t, c).ID}
				done, errs := atOnce(2, func(i int) error {
					return remove(stores[i], c, owners[1-i], record.UserActor(owners[i], ""))
				})
				left := f.count(t, "SELECT count(*) FROM users WHERE account_id = ? AND role = 'owner' AND disabled_at IS NULL", c.ID)
				if done != 1 || left != 1 || !errors.Is(errs[0], value.ErrNotOwner) {
					t.Errorf("%s: %d succeed, %v; %d owners are left", name, done, errs, left)
				}
			}
		}
	})
}

func TestKeysHaveTheUserWhoGeneratedThem(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.customer(t), f.customer(t)
		key, _ := f.key(t, c)
		expect := func(account customer, want string) {
			t.Helper()
			if got, err := f.Keys.Creator(t.Context(), account.ID, key.ID); err != nil || got != want {
				t.Errorf("generated by %q, %v, want %q", got, err, want)
			}
		}
		expect(c, "") // the account has one user
		f.owner(t, c)
		expect(c, c.user.Email)
		expect(other, "")
		must(t, f.People.Remove(t.Context(), c.ID, c.user.ID, c.actor))
		expect(c, c.user.Email)

		revoked, _ := f.key(t, c)
		f.revoke(t, revoked)
		f.generate(t, c, form("by an operator"), record.Operator())
		keys, err := f.Keys.GeneratedBy(t.Context(), c.ID, c.user.ID)
		if err != nil || len(keys) != 1 || keys[0].ID != key.ID {
			t.Errorf("%+v, %v", keys, err)
		}
		if keys, err := f.Keys.GeneratedBy(t.Context(), other.ID, c.user.ID); err != nil || len(keys) != 0 {
			t.Errorf("another account sees %+v, %v", keys, err)
		}
	})
}

func TestRemovedUsersArePurged(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		removed, withKey := f.member(t, c, people.RoleMember), f.member(t, c, people.RoleMember)
		f.generate(t, c, form("kept"), record.UserActor(withKey.ID, ""))
		for _, user := range []people.User{removed, withKey} {
			must(t, f.People.Remove(t.Context(), c.ID, user.ID, c.actor))
		}
		users := func() int { return f.count(t, "SELECT count(*) FROM users WHERE account_id = ?", c.ID) }
		f.clock.Advance(400 * value.Day)
		must(t, f.Erasures.Purge(t.Context()))
		if n := users(); n != 3 {
			t.Errorf("%d users are left while activities are kept, want 3", n)
		}
		f.clock.Advance(time.Hour)
		must(t, f.Erasures.Purge(t.Context()))
		if n := users(); n != 2 {
			t.Errorf("%d users are left, want the owner and the creator of a key", n)
		}
	})
}

// Browsers differ: Chromium sends the domain of an email in ASCII, Firefox as it was typed. The
// database may have hashes of either form.
func TestOneMailboxIsOneUser(t *testing.T) {
	const shown, typed = "ada@b\u00fccher.example", "Ada@bu\u0308cher.example "
	forms := []string{shown, typed, "ADA@XN--BCHER-KVA.example", "ada@b\u00fccher\u3002example"}
	old := func(email string) []byte {
		hash := sha256.Sum256([]byte(email))
		return hash[:]
	}
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		for name, stored := range map[string]struct {
			email string
			hash  []byte
		}{
			"by this release": {}, "as Firefox sends it": {shown, old(shown)}, "as Chromium sends it": {"ada@xn--bcher-kva.example", old("ada@xn--bcher-kva.example")},
		} {
			user, err := f.People.Add(ctx, c.ID, people.NewUser{Email: typed, Password: password, Role: people.RoleMember}, record.Operator())
			must(t, err)
			if user.Email != "Ada@b\u00fccher.example" {
				t.Errorf("stored as %q", user.Email)
			}
			if stored.email != "" {
				f.exec(t, "UPDATE users SET email = ?, email_hash = ? WHERE id = ?", stored.email, stored.hash, user.ID)
			}
			for _, email := range forms {
				find := func(what string, found people.User, err error) {
					t.Helper()
					if found.ID != user.ID || err != nil {
						t.Errorf("%s: %s of %q: %v, %v", name, what, email, found.ID, err)
					}
				}
				found, err := f.People.FindByEmail(ctx, email)
				find("the user", found, err)
				found, err = f.Erasures.FindUser(ctx, email)
				find("the user to erase", found, err)
				found, err = f.SignIn.VerifyPassword(ctx, email, password, people.Client{Address: address(1)})
				find("the user who signs in", found, err)
				identity := people.Identity{Issuer: "https://a.example", Subject: email + name, Email: email, EmailVerified: true}
				in, err := f.SignIn.WithIdentity(ctx, identity, true, browser)
				find("the user of an identity", in.User, err)
				f.exec(t, "DELETE FROM identities")
				must(t, f.Credentials.ResetPassword(ctx, email, password))
				if account, err := f.Accounts.FindByEmail(ctx, email); account.ID != c.ID || err != nil {
					t.Errorf("%s: the account of %q: %v", name, email, err)
				}
				found, err = f.Credentials.PasswordResetUser(ctx, f.resetToken(t, email))
				find("the user of a reset", found, err)
				f.exec(t, "DELETE FROM sign_in_failures")
				f.exec(t, "DELETE FROM outbox")

				same := people.NewUser{Email: email, Role: people.RoleMember}
				checkError(t, name+": added again", errOf(f.People.Add(ctx, c.ID, same, record.Operator())), value.ErrEmailTaken)
				checkError(t, name+": another account", errOf(f.Accounts.Create(ctx, people.NewAccount{Name: "Acme", Email: email, Password: password})), value.ErrEmailTaken)
				checkError(t, name+": another's new email", f.Credentials.ChangeEmail(ctx, c.user.Email, email), value.ErrEmailTaken)
				_, _, err = f.Invitations.Create(ctx, f.customer(t).ID, email, people.RoleMember, record.Operator())
				checkError(t, name+": invited", err, value.ErrEmailTaken)
			}
			for i := range 10 {
				wrong := people.Client{Address: address(10 + i)}
				checkError(t, name+": a wrong password", errOf(f.SignIn.VerifyPassword(ctx, forms[i%len(forms)], "not the password", wrong)), value.ErrWrongCredentials)
			}
			for _, email := range forms {
				_, err := f.SignIn.VerifyPassword(ctx, email, password, people.Client{Address: address(30)})
				if _, limited := errors.AsType[*value.SignInLimitError](err); !limited {
					t.Errorf("%s: %q after ten wrong passwords: %v", name, email, err)
				}
			}
			must(t, f.People.Remove(ctx, c.ID, user.ID, record.Operator()))
			for _, email := range forms {
				if found, err := f.Erasures.FindUser(ctx, email); found.Email == "" || err != nil {
					t.Errorf("%s: the removed user %q: %v", name, email, err)
				}
			}
			f.exec(t, "DELETE FROM sign_in_failures")
		}
		_, _, err := f.Invitations.Create(ctx, c.ID, forms[2], people.RoleMember, record.Operator())
		must(t, err)
		pending, err := f.Invitations.Pending(ctx, c.ID)
		if err != nil || len(pending) != 1 || pending[0].Email != "ADA@b\u00fccher.example" {
			t.Errorf("invited %+v, %v", pending, err)
		}
		_, _, err = f.Invitations.Create(ctx, c.ID, forms[0], people.RoleMember, record.Operator())
		checkError(t, "invited again", err, value.ErrEmailInvited)
	})
}
