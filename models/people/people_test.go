package people_test

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

func actionsOf(activities []record.Activity) (actions []record.Action) {
	for _, activity := range activities {
		actions = append(actions, activity.Action)
	}
	return actions
}

func TestUsersAreAddedAndListed(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		added, err := f.People.Add(t.Context(), c.ID, people.NewUser{Email: " Bob@example.com ", Password: password, Role: people.RoleMember}, record.Operator())
		if err != nil || added.Email != "Bob@example.com" || added.Role != people.RoleMember || added.AccountID != c.ID {
			t.Fatalf("%+v, %v", added, err)
		}
		modelstest.SignIn(t, f.Store, "bob@example.com", password, modelstest.Address(1), nil)
		users := modelstest.Value(f.People.List(t.Context(), c.ID, value.Page{Limit: 1}))(t)
		if len(users.Items) != 1 || users.Next != c.User.ID {
			t.Fatalf("%+v", users)
		}
		if first := users.Items[0]; first.ID != c.User.ID || first.Role != people.RoleOwner {
			t.Errorf("%+v", first)
		}
		users, err = f.People.List(t.Context(), c.ID, value.Page{After: c.User.ID, Limit: 1})
		if err != nil || len(users.Items) != 1 || users.Next != uuid.Nil || users.Items[0].ID != added.ID {
			t.Errorf("%+v, %v", users, err)
		}
		if actions := actionsOf(f.Activities(t, c)); !slices.Equal(actions, []record.Action{record.ActionUserAdded}) {
			t.Errorf("activities %v", actions)
		}
		for _, email := range []string{"BOB@example.com", other.User.Email} {
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
		user := f.Member(t, f.Customer(t), people.RoleMember)
		for _, guess := range []string{"", password, user.PasswordHash, strings.Repeat("\x00", 32)} {
			modelstest.SignIn(t, f.Store, user.Email, guess, modelstest.Address(1), value.ErrWrongCredentials)
		}
		must(t, f.Credentials.ResetPassword(t.Context(), user.Email, password))
		modelstest.SignIn(t, f.Store, user.Email, password, modelstest.Address(1), nil)
	})
}

func TestRemovedUserIsSignedOutAndItsEmailIsFree(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		key, secret := f.Key(t, c)
		f.Owner(t, c)
		token := f.Session(t, c)
		verified := modelstest.Value(f.SignIn.VerifyPassword(t.Context(), c.User.Email, password, modelstest.Browser))(t)
		checkError(t, "as another account", f.People.Remove(t.Context(), other.ID, c.User.ID, record.Operator()), value.ErrUserNotFound)
		must(t, f.People.Remove(t.Context(), c.ID, c.User.ID, record.Operator()))
		checkError(t, "session", errOf(f.Sessions.Find(t.Context(), token, modelstest.Browser)), value.ErrSessionNotFound)
		checkError(t, "a sign-in in flight", errOf(f.SignIn.Start(t.Context(), verified, modelstest.Browser)), value.ErrWrongCredentials)
		modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Address(1), value.ErrWrongCredentials)
		modelstest.Use(t, f.Store, secret, 1)
		checkError(t, "again", f.People.Remove(t.Context(), c.ID, c.User.ID, record.Operator()), value.ErrUserNotFound)
		activities := f.Activities(t, c)
		if newest := activities[0]; newest.Action != record.ActionUserRemoved || newest.Label != c.User.Email || newest.ActorName != "Operator" {
			t.Errorf("%+v", newest)
		}
		for _, activity := range activities {
			if activity.Action == record.ActionKeyGenerated && (activity.ActorName != c.User.Email || *activity.SubjectID != key.ID) {
				t.Errorf("the removed user is not named: %+v", activity)
			}
		}
		must(t, errOf(f.People.Add(t.Context(), other.ID, people.NewUser{Email: c.User.Email, Role: people.RoleMember}, record.Operator())))
	})
}

func TestLastOwnerCannotBeRemoved(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		member := f.Member(t, c, people.RoleMember)
		checkError(t, "beside a member", f.People.Remove(t.Context(), c.ID, c.User.ID, record.Operator()), value.ErrLastOwner)
		must(t, f.People.Remove(t.Context(), c.ID, member.ID, record.Operator()))
		disabled := f.Owner(t, c)
		must(t, f.People.SetDisabled(t.Context(), disabled.Email, true))
		checkError(t, "beside a disabled owner", f.People.Remove(t.Context(), c.ID, c.User.ID, record.Operator()), value.ErrLastOwner)
		checkError(t, "disabled", f.People.SetDisabled(t.Context(), c.User.Email, true), value.ErrLastOwner)
		must(t, f.People.SetDisabled(t.Context(), disabled.Email, false))

		owners := []uuid.UUID{c.User.ID, disabled.ID}
		_, errs := modelstest.AtOnce(len(owners), func(i int) error {
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
		ctx, off := t.Context(), f.Open(t, models.Options{PasswordsOff: true})
		leave := map[string]func(s *models.Store, c customer) error{
			"remove": func(s *models.Store, c customer) error { return s.People.Remove(ctx, c.ID, c.User.ID, c.Actor) },
			"make member": func(s *models.Store, c customer) error {
				return errOf(s.People.SetRole(ctx, c.ID, c.User.ID, people.RoleMember, c.Actor))
			},
		}
		for name, leave := range leave {
			c := f.Customer(t)
			other := f.Member(t, c, people.RoleOwner)
			f.link(t, c, other) // expires
			checkError(t, name, leave(f.Store, c), value.ErrLastOwner)
			checkError(t, "remove the other", f.People.Remove(ctx, c.ID, other.ID, c.Actor), nil)
		}
		for name, way := range map[string]func(customer, people.User){
			"password": func(_ customer, u people.User) { must(t, f.Credentials.ResetPassword(ctx, u.Email, newPassword)) },
			"identity": func(_ customer, u people.User) {
				must(t, errOf(f.SignIn.WithIdentity(ctx, people.Identity{Issuer: "https://a.example", Subject: u.Email, Email: u.Email, EmailVerified: true}, true, modelstest.Browser)))
			},
			"passkey": func(c customer, u people.User) {
				signedIn := modelstest.Value(f.SignIn.UseLink(ctx, f.link(t, c, u), modelstest.Browser))(t)
				session := modelstest.Value(f.Sessions.Find(ctx, signedIn.Token, modelstest.Browser))(t)
				f.Passkey(t, session, record.UserActor(u.ID, ""))
			},
		} {
			for leaving, leave := range leave {
				c, withPasskey := f.Customer(t), f.Customer(t)
				other := f.Member(t, c, people.RoleOwner)
				session := modelstest.Value(f.Sessions.Find(ctx, f.Session(t, withPasskey), modelstest.Browser))(t)
				f.Passkey(t, session, withPasskey.Actor)
				beside := f.Member(t, withPasskey, people.RoleOwner)
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
		c := f.Customer(t)
		f.Owner(t, c)
		token := f.Session(t, c)
		for range 2 {
			must(t, f.People.SetDisabled(t.Context(), strings.ToUpper(c.User.Email), true))
		}
		checkError(t, "session", errOf(f.Sessions.Find(t.Context(), token, modelstest.Browser)), value.ErrSessionNotFound)
		checkError(t, "a sign-in in flight", errOf(f.SignIn.Start(t.Context(), c.User, modelstest.Browser)), value.ErrWrongCredentials)
		modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Address(1), value.ErrSignInDisabled)
		for range 2 {
			must(t, f.People.SetDisabled(t.Context(), c.User.Email, false))
		}
		checkError(t, "the old session", errOf(f.Sessions.Find(t.Context(), token, modelstest.Browser)), value.ErrSessionNotFound)
		modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Address(1), nil)
		// Each is recorded once.
		want := []record.Action{record.ActionUserEnabled, record.ActionUserDisabled, record.ActionSignedIn, record.ActionUserAdded}
		if actions := actionsOf(f.Activities(t, c)); !slices.Equal(actions, want) {
			t.Errorf("activities %v, want %v", actions, want)
		}
		checkError(t, "unknown", f.People.SetDisabled(t.Context(), "nobody@example.com", true), value.ErrUserNotFound)
	})
}

func TestRoleIsChanged(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		member := f.Member(t, c, people.RoleMember)
		must(t, f.Credentials.ResetPassword(t.Context(), member.Email, password))
		if found, err := f.People.FindByEmail(t.Context(), " "+strings.ToUpper(member.Email)); err != nil || found.ID != member.ID {
			t.Errorf("found %+v, %v", found, err)
		}
		checkError(t, "unknown", errOf(f.People.FindByEmail(t.Context(), "nobody@example.com")), value.ErrUserNotFound)
		set := func(id uuid.UUID, role people.Role, actor record.Actor) error {
			return errOf(f.People.SetRole(t.Context(), c.ID, id, role, actor))
		}
		checkError(t, "by the member", set(member.ID, people.RoleOwner, record.UserActor(member.ID, "")), value.ErrNotOwner)
		checkError(t, "by another account's owner", set(member.ID, people.RoleOwner, other.Actor), value.ErrNotOwner)
		checkError(t, "of another account's user", set(other.User.ID, people.RoleMember, c.Actor), value.ErrUserNotFound)
		checkError(t, "of the last owner", set(c.User.ID, people.RoleMember, c.Actor), value.ErrLastOwner)
		checkInvalid(t, "unknown role", set(member.ID, "admin", c.Actor), "role")
		token := f.Session(t, c)
		for range 2 {
			must(t, set(member.ID, people.RoleOwner, c.Actor))
		}
		must(t, set(c.User.ID, people.RoleMember, c.Actor))
		// The role is that of the time of the request.
		if session, err := f.Open(t, models.Options{}).Sessions.Find(t.Context(), token, modelstest.Browser); err != nil || session.Role != people.RoleMember {
			t.Errorf("%+v, %v", session, err)
		}
		checkError(t, "by a former owner", set(c.User.ID, people.RoleOwner, c.Actor), value.ErrNotOwner)
		if got := actionsOf(f.Activities(t, c))[:3]; got[0] != record.ActionUserMadeMember || got[1] != record.ActionUserMadeOwner || got[2] != record.ActionSignedIn {
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
			stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
			for range 5 {
				c := f.Customer(t)
				owners := []uuid.UUID{c.User.ID, f.Owner(t, c).ID}
				done, errs := modelstest.AtOnce(2, func(i int) error {
					return remove(stores[i], c, owners[1-i], record.UserActor(owners[i], ""))
				})
				left := f.Count(t, "SELECT count(*) FROM users WHERE account_id = ? AND role = 'owner' AND disabled_at IS NULL", c.ID)
				if done != 1 || left != 1 || !errors.Is(errs[0], value.ErrNotOwner) {
					t.Errorf("%s: %d succeed, %v; %d owners are left", name, done, errs, left)
				}
			}
		}
	})
}

func TestKeysHaveTheUserWhoGeneratedThem(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		key, _ := f.Key(t, c)
		expect := func(account customer, want string) {
			t.Helper()
			if got, err := f.Keys.Creator(t.Context(), account.ID, key.ID); err != nil || got != want {
				t.Errorf("generated by %q, %v, want %q", got, err, want)
			}
		}
		expect(c, "") // the account has one user
		f.Owner(t, c)
		expect(c, c.User.Email)
		expect(other, "")
		must(t, f.People.Remove(t.Context(), c.ID, c.User.ID, c.Actor))
		expect(c, c.User.Email)

		revoked, _ := f.Key(t, c)
		f.Revoke(t, revoked)
		f.Generate(t, c, form("by an operator"), record.Operator())
		keys, err := f.Keys.GeneratedBy(t.Context(), c.ID, c.User.ID)
		if err != nil || len(keys) != 1 || keys[0].ID != key.ID {
			t.Errorf("%+v, %v", keys, err)
		}
		if keys, err := f.Keys.GeneratedBy(t.Context(), other.ID, c.User.ID); err != nil || len(keys) != 0 {
			t.Errorf("another account sees %+v, %v", keys, err)
		}
	})
}

func TestRemovedUsersArePurged(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		removed, withKey := f.Member(t, c, people.RoleMember), f.Member(t, c, people.RoleMember)
		f.Generate(t, c, form("kept"), record.UserActor(withKey.ID, ""))
		for _, user := range []people.User{removed, withKey} {
			must(t, f.People.Remove(t.Context(), c.ID, user.ID, c.Actor))
		}
		users := func() int { return f.Count(t, "SELECT count(*) FROM users WHERE account_id = ?", c.ID) }
		f.Clock.Advance(400 * value.Day)
		must(t, f.Erasures.Purge(t.Context()))
		if n := users(); n != 3 {
			t.Errorf("%d users are left while activities are kept, want 3", n)
		}
		f.Clock.Advance(time.Hour)
		must(t, f.Erasures.Purge(t.Context()))
		if n := users(); n != 2 {
			t.Errorf("%d users are left, want the owner and the creator of a key", n)
		}
	})
}

// Browsers differ: Chromium sends the domain of an email in ASCII, Firefox as it was typed. Accents
// are composed or not.
const shown, typed = "zo\u00eb@b\u00fccher.example", "Zoe\u0308@bu\u0308cher.example "

var emailForms = []string{shown, typed, "ZO\u00cb@XN--BCHER-KVA.example", "zoe\u0308@b\u00fccher\u3002example"}

func TestOneMailboxIsInvitedOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		_, _, err := f.Invitations.Create(ctx, c.ID, emailForms[2], people.RoleMember, record.Operator())
		must(t, err)
		pending, err := f.Invitations.Pending(ctx, c.ID)
		if err != nil || len(pending) != 1 || pending[0].Email != "ZO\u00cb@b\u00fccher.example" {
			t.Errorf("invited %+v, %v", pending, err)
		}
		_, _, err = f.Invitations.Create(ctx, c.ID, emailForms[0], people.RoleMember, record.Operator())
		checkError(t, "invited again", err, value.ErrEmailInvited)
	})
}

// The database may have hashes of each form.
func TestOneMailboxIsOneUser(t *testing.T) {
	old := func(email string) []byte {
		hash := sha256.Sum256([]byte(email))
		return hash[:]
	}
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		for n, stored := range []struct {
			name, email string
			hash        []byte
		}{
			{name: "by this release"},
			{"as Firefox sends it", shown, old(shown)},
			{"as Chromium sends it", "zo\u00eb@xn--bcher-kva.example", old("zo\u00eb@xn--bcher-kva.example")},
			{"not composed", "zoe\u0308@b\u00fccher.example", old("zoe\u0308@xn--bcher-kva.example")},
		} {
			name := stored.name
			user, err := f.People.Add(ctx, c.ID, people.NewUser{Email: typed, Password: password, Role: people.RoleMember}, record.Operator())
			must(t, err)
			if user.Email != "Zo\u00eb@b\u00fccher.example" {
				t.Errorf("stored as %q", user.Email)
			}
			if stored.email != "" {
				f.Exec(t, "UPDATE users SET email = ?, email_hash = ? WHERE id = ?", stored.email, stored.hash, user.ID)
			}
			for i, email := range emailForms {
				find := func(what string, found people.User, err error) {
					t.Helper()
					if found.ID != user.ID || err != nil {
						t.Errorf("%s: %s of %q: %v, %v", name, what, email, found.ID, err)
					}
				}
				found, err := f.People.FindByEmail(ctx, email)
				find("the user", found, err)
				same := people.NewUser{Email: email, Role: people.RoleMember}
				checkError(t, name+": added again", errOf(f.People.Add(ctx, c.ID, same, record.Operator())), value.ErrEmailTaken)
				if i != (n+1)%len(emailForms) {
					continue // Each of the others reads emails as these two do.
				}
				found, err = f.Erasures.FindUser(ctx, email)
				find("the user to erase", found, err)
				found, err = f.SignIn.VerifyPassword(ctx, email, password, people.Client{Address: modelstest.Address(1)})
				find("the user who signs in", found, err)
				identity := people.Identity{Issuer: "https://a.example", Subject: email + name, Email: email, EmailVerified: true}
				in, err := f.SignIn.WithIdentity(ctx, identity, true, modelstest.Browser)
				find("the user of an identity", in.User, err)
				f.Exec(t, "DELETE FROM identities")
				must(t, f.Credentials.ResetPassword(ctx, email, password))
				if account, err := f.Accounts.FindByEmail(ctx, email); account.ID != c.ID || err != nil {
					t.Errorf("%s: the account of %q: %v", name, email, err)
				}
				found, err = f.Credentials.PasswordResetUser(ctx, f.ResetToken(t, email))
				find("the user of a reset", found, err)
				f.Exec(t, "DELETE FROM sign_in_failures")
				f.Exec(t, "DELETE FROM outbox")
				checkError(t, name+": another account", errOf(f.Accounts.Create(ctx, people.NewAccount{Name: "Acme", Email: email, Password: password})), value.ErrEmailTaken)
				checkError(t, name+": another's new email", f.Credentials.ChangeEmail(ctx, c.User.Email, email), value.ErrEmailTaken)
				_, _, err = f.Invitations.Create(ctx, f.Customer(t).ID, email, people.RoleMember, record.Operator())
				checkError(t, name+": invited", err, value.ErrEmailTaken)
			}
			for i := range 10 {
				wrong := people.Client{Address: modelstest.Address(10 + i)}
				checkError(t, name+": a wrong password", errOf(f.SignIn.VerifyPassword(ctx, emailForms[i%len(emailForms)], "not the password", wrong)), value.ErrWrongCredentials)
			}
			for _, email := range emailForms {
				_, err := f.SignIn.VerifyPassword(ctx, email, password, people.Client{Address: modelstest.Address(30)})
				if _, limited := errors.AsType[*value.SignInLimitError](err); !limited {
					t.Errorf("%s: %q after ten wrong passwords: %v", name, email, err)
				}
			}
			must(t, f.People.Remove(ctx, c.ID, user.ID, record.Operator()))
			for _, email := range emailForms {
				if found, err := f.Erasures.FindUser(ctx, email); found.Email == "" || err != nil {
					t.Errorf("%s: the removed user %q: %v", name, email, err)
				}
			}
			f.Exec(t, "DELETE FROM sign_in_failures")
		}
	})
}
