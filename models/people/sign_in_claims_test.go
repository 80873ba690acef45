package people_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// claimsIssuer is the provider that decides about accounts and roles.
const claimsIssuer = "https://claims.example"

// claimedBy returns the identity of a person whom the provider gives a role in the account.
func claimedBy(c customer, email string, role people.Role) people.Identity {
	identity := identityOf(email)
	identity.Issuer = claimsIssuer
	identity.Access = &people.IdentityAccess{AccountID: c.ID, Role: role}
	return identity
}

// The provider may have removed the person since. So nothing of one's own signs in, also if it was
// set up before, as long as the provider decides.
func TestUserOfTheProviderHasNoOtherWayIn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, plain := t.Context(), f.Customer(t), f.Open(t, models.Options{Mail: true})
		f.Store = plain
		session := f.SignedIn(t, c)
		passkey := f.Passkey(t, session, c.Actor)
		a, _ := f.TwoSteps(t, c)
		pending := f.firstStep(t, c)
		linked := f.Find(t, f.linkSession(t, c))

		f.Store = f.Open(t, models.Options{Mail: true, RolesFrom: claimsIssuer})
		used := int64(1)
		usePasskey := func() error {
			used++
			passkey.SignCount = used
			return errOf(f.SignIn.WithPasskey(ctx, passkey, uuid.NewString(), modelstest.Browser))
		}
		// Before the provider decides about this user, all stays as it is.
		must(t, usePasskey())
		f.Exec(t, "DELETE FROM outbox")
		must(t, f.Credentials.RequestPasswordReset(ctx, c.User.Email, modelstest.Browser))
		_, reset, err := f.Outbox.Claim(ctx)
		must(t, err)
		identity := claimedBy(c, "ada@claims.example", people.RoleOwner)
		elsewhere := identity
		elsewhere.Access = &people.IdentityAccess{AccountID: uuid.New(), Role: people.RoleOwner}
		checkError(t, "access to another account", f.Credentials.ConnectIdentity(ctx, linked, elsewhere, "Acme ID", c.Actor), value.ErrNoAccess)
		elsewhere.Access = nil
		checkError(t, "no access", f.Credentials.ConnectIdentity(ctx, linked, elsewhere, "Acme ID", c.Actor), value.ErrNoAccess)
		must(t, f.Credentials.ConnectIdentity(ctx, linked, identity, "Acme ID", c.Actor))

		in := modelstest.Value(f.SignIn.WithClaims(ctx, identity, false, modelstest.Browser))(t)
		session = f.Find(t, in.Token)
		if !session.ByProvider || !session.NoPassword {
			t.Errorf("session %+v", session)
		}
		verified, err := f.SignIn.VerifyPassword(ctx, c.User.Email, password, modelstest.Browser)
		must(t, err)
		for name, err := range map[string]error{
			"a password":         errOf(f.SignIn.Start(ctx, verified, modelstest.Browser)),
			"a second step":      errOf(f.secondStep(t, pending, a.Code(t, 0))),
			"a passkey":          usePasskey(),
			"the page of a link": errOf(f.Credentials.PasswordResetUser(ctx, reset)),
			"a reset":            errOf(f.Credentials.UsePasswordReset(ctx, reset, newPassword, modelstest.Browser)),
			"a new password":     errOf(f.Credentials.ChangePassword(ctx, session, password, newPassword, c.Actor)),
			"a new passkey": f.Credentials.AddPasskey(ctx, session,
				people.Passkey{CredentialID: []byte("new"), Credential: "{}", Name: "Phone"}, uuid.NewString(), c.Actor),
			"no provider": f.Credentials.DisconnectIdentity(ctx, session, claimsIssuer, "Acme ID", c.Actor),
		} {
			checkError(t, name, err, value.ErrOnlyByProvider)
		}
		checkError(t, "to confirm", errOf(f.Sessions.Reauthenticate(ctx, session, password, c.Actor)), value.ErrSignInTooOld)
		f.Exec(t, "DELETE FROM outbox")
		must(t, f.Credentials.RequestPasswordReset(ctx, c.User.Email, modelstest.Browser))
		if mail, _, err := f.Outbox.Claim(ctx); !errors.Is(err, value.ErrNoMail) {
			t.Errorf("a mail %+v, %v", mail, err)
		}
		// The provider, and links of operators, sign in. A change of the email needs no
		// password.
		must(t, errOf(f.SignIn.WithClaims(ctx, identity, false, modelstest.Browser)))
		must(t, errOf(f.SignIn.UseLink(ctx, f.link(t, c, c.User), modelstest.Browser)))
		must(t, f.Credentials.RequestEmailChange(ctx, session, "", modelstest.NewEmail(), c.Actor))
		// Without the claims, all that was set up before works again.
		must(t, errOf(plain.SignIn.WithPasskey(ctx, passkey, uuid.NewString(), modelstest.Browser)))
		must(t, plain.Credentials.DisconnectIdentity(ctx, session, claimsIssuer, "Acme ID", c.Actor))
	})
}

// Codes and passkeys of the portal are for those who sign in to it.
func TestUserOfTheProviderNeedsNoSecondFactor(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		f.Store = f.Open(t, models.Options{RolesFrom: claimsIssuer})
		eve := modelstest.Value(f.SignIn.WithClaims(ctx, claimedBy(c, modelstest.NewEmail(), people.RoleOwner), false, modelstest.Browser))(t)
		people, without, err := f.Accounts.CountFactors(ctx, c.ID)
		if err != nil || people != 2 || without != 1 {
			t.Errorf("%d people, %d without a factor, %v", people, without, err)
		}
		if listed, _, err := f.People.CountWithoutFactor(ctx, c.ID, c.User.ID); err != nil || listed != 1 {
			t.Errorf("%d people are listed without a factor", listed)
		}
		byHand := f.Session(t, c)
		checkError(t, "required by an owner without one", f.Accounts.RequireSecondFactor(ctx, c.ID, true, c.Actor), value.ErrNoFactor)
		must(t, f.Accounts.RequireSecondFactor(ctx, c.ID, true, record.UserActor(eve.User.ID, "")))
		if session := f.Find(t, eve.Token); session.FactorDue {
			t.Error("the provider's user needs a factor")
		}
		if factors := modelstest.Value(f.Credentials.Factors(ctx, f.Find(t, eve.Token)))(t); !factors.HasAny {
			t.Errorf("factors %+v", factors)
		}
		if session := f.Find(t, byHand); !session.FactorDue {
			t.Error("the other user needs no factor")
		}
	})
}
