package people_test

import (
	"errors"
	"strings"
	"testing"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// joined is an email of a user who joined the customer's account by a link, with the token of the
// session. The link is that of the mail, or the one on the page, which proves nothing.
func (f *fixture) joined(t *testing.T, c customer, byMail bool) (email string, in people.SignedIn) {
	t.Helper()
	email = modelstest.NewEmail()
	f.Exec(t, "DELETE FROM outbox")
	_, token := f.Invite(t, c, email, people.RoleOwner)
	mail, mailed := f.mailedToken(t)
	must(t, f.Outbox.Sent(t.Context(), mail))
	if byMail {
		token = mailed
	}
	in, err := f.Invitations.Accept(t.Context(), token, password, modelstest.Browser)
	must(t, err)
	return email, in
}

func identityOf(email string) people.Identity {
	return people.Identity{Issuer: "https://a.example", Subject: email, Email: email, EmailVerified: true}
}

// usesReset sets a new password with a mailed link.
func (f *fixture) usesReset(t *testing.T, email string) {
	t.Helper()
	f.Exec(t, "DELETE FROM outbox")
	must(t, f.Credentials.RequestPasswordReset(t.Context(), email, modelstest.Browser))
	mail, token, err := f.Outbox.Claim(t.Context())
	must(t, err)
	must(t, f.Outbox.Sent(t.Context(), mail))
	must(t, errOf(f.Credentials.UsePasswordReset(t.Context(), token, newPassword, modelstest.Browser)))
}

func TestOnlyAProvenEmailIsTrusted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		f.Store = f.Open(t, models.Options{Mail: true})
		trusted := func(email string) error {
			return errOf(f.SignIn.WithIdentity(ctx, identityOf(email), true, modelstest.Browser))
		}
		shown, _ := f.joined(t, c, false)
		checkError(t, "joined by a link on a page", trusted(shown), value.ErrIdentityNotFound)
		f.usesReset(t, shown)
		must(t, trusted(shown))

		mailed, _ := f.joined(t, c, true)
		must(t, trusted(mailed))

		former, in := f.joined(t, c, false)
		session := f.Find(t, in.Token)
		f.Exec(t, "DELETE FROM outbox")
		confirmed := modelstest.NewEmail()
		must(t, f.ChangeEmail(t, session, customer{Actor: c.Actor, User: people.User{Email: former}}, confirmed))
		must(t, trusted(confirmed))

		changed, _ := f.joined(t, c, false)
		// An operator vouches for it.
		must(t, f.Credentials.ChangeEmail(ctx, changed, changed))
		must(t, trusted(changed))
	})
}

func TestFirstConnectionByATrustedEmailEndsWhatWasSetBefore(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		f.Store = f.Open(t, models.Options{Mail: true})
		email, in := f.joined(t, c, false)
		session := f.Find(t, in.Token)
		other := identityOf("inviter@example.com")
		must(t, f.Credentials.ConnectIdentity(ctx, session, other, "Acme ID", c.Actor))
		f.Exec(t, "INSERT INTO passkeys (id, user_id, credential_id, credential, sign_count, name, created_at) VALUES (?, ?, ?, '{}', 0, 'Phone', ?)",
			newID(), in.User.ID, []byte("credential"), f.Clock.Now())
		f.Clock.Advance(value.Day / 100)
		f.usesReset(t, email)
		user, err := f.SignIn.VerifyPassword(ctx, email, newPassword, modelstest.Browser)
		must(t, err)
		before, err := f.SignIn.Start(ctx, user, modelstest.Browser)
		must(t, err)
		first, err := f.SignIn.WithIdentity(ctx, identityOf(email), true, modelstest.Browser)
		must(t, err)
		checkError(t, "the session before", errOf(f.Sessions.Find(ctx, before.Token, modelstest.Browser)), value.ErrSessionNotFound)
		must(t, errOf(f.Sessions.Find(ctx, first.Token, modelstest.Browser)))
		modelstest.SignIn(t, f.Store, email, newPassword, modelstest.Address(1), value.ErrWrongCredentials)
		checkError(t, "an identity connected before", errOf(f.SignIn.WithIdentity(ctx, other, false, modelstest.Browser)), value.ErrIdentityNotFound)
		f.CheckCount(t, 0, "SELECT count(*) FROM passkeys")
		// A later sign-in ends nothing.
		must(t, errOf(f.SignIn.WithIdentity(ctx, identityOf(email), true, modelstest.Browser)))
		must(t, errOf(f.Sessions.Find(ctx, first.Token, modelstest.Browser)))
	})
}

func TestUnprovenEmailBlocksNoMailedInvitation(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, squatted, c := t.Context(), f.Customer(t), f.Customer(t)
		plain := f.Store
		f.Store = f.Open(t, models.Options{Mail: true})
		email, in := f.joined(t, squatted, false)
		proven, _ := f.joined(t, squatted, true)
		invite := func(store *models.Store, email string) error {
			_, _, err := store.Invitations.Create(ctx, c.ID, email, people.RoleMember, c.Actor)
			return err
		}
		checkError(t, "a proven email", invite(f.Store, proven), value.ErrEmailTaken)
		checkError(t, "no mail is sent", invite(plain, email), value.ErrEmailTaken)

		f.Exec(t, "DELETE FROM outbox")
		_, shown := f.Invite(t, c, email, people.RoleMember)
		_, mailed := f.mailedToken(t)
		checkError(t, "the link on the page", modelstest.Accept(ctx, f.Store, shown, password), value.ErrEmailTaken)
		must(t, modelstest.Accept(ctx, f.Store, mailed, newPassword))

		// The email signs in to the account that invited it by mail.
		user, err := f.SignIn.VerifyPassword(ctx, email, newPassword, modelstest.Browser)
		must(t, err)
		if user.AccountID != c.ID {
			t.Error("the email is still that of the other account")
		}
		modelstest.SignIn(t, f.Store, email, password, modelstest.Address(1), value.ErrWrongCredentials)
		// The earlier user keeps the session, the password and the role, with another
		// email.
		earlier := f.Find(t, in.Token)
		if !strings.HasSuffix(earlier.Email, "@unproven.invalid") || earlier.Role != people.RoleOwner {
			t.Errorf("%+v", earlier)
		}
		modelstest.SignIn(t, f.Store, earlier.Email, password, modelstest.Address(2), nil)
		changed := f.Recorded(t, squatted, record.ActionEmailChanged)
		if len(changed) != 1 || changed[0].FormerLabel != email || changed[0].Label != earlier.Email || changed[0].Address != "" {
			t.Errorf("recorded %+v", changed)
		}
		f.CheckCount(t, 1, "SELECT count(*) FROM outbox WHERE kind = ? AND recipient = ?", record.ActionEmailChanged, email)
		// Nobody receives mail at the new email.
		must(t, errOf(f.Credentials.ChangePassword(ctx, earlier, password, newPassword, record.UserActor(in.User.ID, ""))))
		f.CheckCount(t, 0, "SELECT count(*) FROM outbox WHERE recipient LIKE '%unproven%'")
	})
}

func TestUnprovenEmailBlocksNoConfirmation(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		squatted, c := f.Customer(t), f.Customer(t)
		f.Store = f.Open(t, models.Options{Mail: true})
		email, in := f.joined(t, squatted, false)
		session := f.SignedIn(t, c)
		must(t, f.ChangeEmail(t, session, c, email))
		if got := f.Find(t, in.Token).Email; got == email {
			t.Error("both users have the email")
		}
		user, err := f.SignIn.VerifyPassword(t.Context(), email, password, modelstest.Browser)
		if err != nil || user.ID != c.User.ID {
			t.Errorf("%v, %v", user.ID, err)
		}
	})
}

// The word of an operator and of the identity provider counts more than an email that nobody has
// proved: the user of another account who has it gets another one.
func TestUnprovenEmailClosesNoDoor(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, squatted := t.Context(), f.Customer(t)
		f.Store = f.Open(t, models.Options{Mail: true, RolesFrom: claimsIssuer})
		for name, give := range map[string]func(c customer, email string) error{
			"a user who is added": func(c customer, email string) error {
				return errOf(f.People.Add(ctx, c.ID, people.NewUser{Email: email, Role: people.RoleMember}, record.Operator()))
			},
			"a sign-in link": func(c customer, email string) error {
				return errOf(f.SignIn.CreateLinkFor(ctx, c.ID, people.NewUser{Email: email, Role: people.RoleMember}, record.Operator()))
			},
			"a sign-in with claims": func(c customer, email string) error {
				return errOf(f.SignIn.WithClaims(ctx, claimedBy(c, email, people.RoleMember), false, modelstest.Browser))
			},
			"a new account": func(_ customer, email string) error {
				return errOf(f.Accounts.Create(ctx, people.NewAccount{Name: "New", Email: email, Password: password}))
			},
			"a new email": func(c customer, email string) error { return f.Credentials.ChangeEmail(ctx, c.User.Email, email) },
		} {
			c := f.Customer(t)
			email, in := f.joined(t, squatted, false)
			must(t, give(c, strings.ToUpper(email)))
			user := modelstest.Value(f.People.FindByEmail(ctx, email))(t)
			if user.AccountID == squatted.ID || user.EmailProvenAt == nil {
				t.Errorf("%s: %+v", name, user)
			}
			if earlier := f.Find(t, in.Token); !strings.HasSuffix(earlier.Email, "@unproven.invalid") || earlier.UserID != in.User.ID {
				t.Errorf("%s: the earlier user is %+v", name, earlier)
			}
			changed := f.Recorded(t, squatted, record.ActionEmailChanged)
			if len(changed) == 0 || changed[0].FormerLabel != email || changed[0].ActorKind != record.ActorVisitor || changed[0].Address != "" {
				t.Errorf("%s: recorded %+v", name, changed)
			}
			proven, _ := f.joined(t, squatted, true)
			if err := give(f.Customer(t), proven); !errors.Is(err, value.ErrEmailTaken) && !errors.Is(err, value.ErrIdentityNotFound) {
				t.Errorf("%s: a proven email: %v", name, err)
			}
			// In one account, it is known who has the email.
			unproven, _ := f.joined(t, squatted, false)
			if err := give(squatted, unproven); err == nil && name != "a sign-in link" && name != "a new account" {
				t.Errorf("%s: an unproven email of the same account was taken away", name)
			}
		}
	})
}

// An invitation by a copied link proves no email, but the provider at which the person joins may.
func TestUnprovenEmailDoesNotKeepFromJoiningAtTheProvider(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, squatted := t.Context(), f.Customer(t)
		f.Store = f.Open(t, models.Options{Mail: true})
		join := func(trustEmail, verified bool, of func(email string) string) (people.User, error) {
			email, _ := f.joined(t, squatted, false)
			c := f.Customer(t)
			_, token, err := f.Invitations.Create(ctx, c.ID, email, people.RoleMember, c.Actor)
			must(t, err)
			found := people.Identity{Issuer: claimsIssuer, Subject: email, Email: of(email), EmailVerified: verified}
			signedIn, err := f.Invitations.AcceptWithIdentity(ctx, token, found, trustEmail, modelstest.Browser)
			return signedIn.User, err
		}
		same, other := strings.ToUpper, func(email string) string { return "other-" + email }
		if user, err := join(true, true, same); err != nil || user.EmailProvenAt == nil {
			t.Errorf("with the email of the invitation: %+v, %v", user, err)
		}
		for name, err := range map[string]error{
			"email not trusted":  errOf(join(false, true, same)),
			"email not verified": errOf(join(true, false, same)),
			"another email":      errOf(join(true, true, other)),
		} {
			if !errors.Is(err, value.ErrEmailTaken) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
