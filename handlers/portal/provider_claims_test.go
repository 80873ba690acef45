package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/handlers/handlerstest"
	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// claimsProvider starts a provider that decides about accounts and roles.
func claimsProvider(t *testing.T, base string) *handlerstest.Provider {
	t.Helper()
	provider := handlerstest.NewProvider(base)
	provider.Config.Claims = true
	provider.Start(t)
	t.Cleanup(provider.Stop)
	return provider
}

func TestProviderDecidesAboutAccountsAndRoles(t *testing.T) {
	t.Parallel()
	provider := claimsProvider(t, httpBase)
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		s := newSite(t, databaseURL, httpBase, models.Options{RolesFrom: provider.Config.Issuer}).withProvider(t, provider)
		c, other := s.customer(t), s.customer(t)
		email := "ada-of-" + c.email
		as := func(account uuid.UUID, role string) string { return email + "|" + account.String() + "|" + role }

		refused := func(name string) {
			t.Helper()
			page := s.visitor(t).signInAs(name).is(http.StatusForbidden)
			page.one("alert", "Your organization has not given you access to Voice Portal.")
		}
		for _, name := range []string{
			email, as(c.account.ID, "admin"), as(c.account.ID, ""), email + "|x|member", as(uuid.New(), "member"), "unverified-" + as(c.account.ID, "member"),
		} {
			refused(name)
		}
		v := s.visitor(t)
		v.signInAs(as(c.account.ID, "member")).redirects("/agents")
		v.get("/account").says(email)
		v.get("/settings").is(http.StatusForbidden)

		// A later sign-in sets the role, also of the session that has begun.
		s.visitor(t).signInAs(as(c.account.ID, "owner")).redirects("/agents")
		v.get("/settings").is(http.StatusOK)
		c.get("/activity").says("The portal made " + email + " an owner")

		// By hand it cannot be changed.
		row := c.get("/people").is(http.StatusOK).person(email)
		row.one("button", "Make member").with("disabled", "")
		row.says("Acme ID decides whether this person is an owner or a member.")
		user := modelstest.Value(s.store.People.FindByEmail(t.Context(), email))(t)
		c.get("/people/"+user.ID.String()+"/role").none("button", "Confirm member")
		c.post("/people/"+user.ID.String()+"/role", url.Values{"role": {"member"}}).is(http.StatusConflict).says("The identity provider decides")

		// The last owner stays one.
		modelstest.Must(t, s.store.People.Remove(t.Context(), c.account.ID, modelstest.Value(s.store.People.FindByEmail(t.Context(), c.email))(t).ID, record.Operator()))
		s.visitor(t).signInAs(as(c.account.ID, "member")).redirects("/agents")
		v.get("/settings").is(http.StatusOK)
		v.get("/activity").says(email + " stayed an owner, because the account has no other one")

		// Another account's claim, or none, does not let a known user in, and moves nobody.
		refused(as(other.account.ID, "owner"))
		refused(email)
		if again := modelstest.Value(s.store.People.FindByEmail(t.Context(), email))(t); again.AccountID != c.account.ID || again.Role != people.RoleOwner {
			t.Errorf("the user is %+v", again)
		}
		if people := modelstest.Value(s.store.People.List(t.Context(), other.account.ID, value.Page{Limit: 9}))(t); len(people.Items) != 1 {
			t.Errorf("the other account has %d people", len(people.Items))
		}
		// The email of another user connects nothing without the trust in it.
		taken := s.visitor(t).signInAs(strings.Join([]string{other.email, other.account.ID.String(), "member"}, "|"))
		taken.is(http.StatusForbidden).one("alert", "isn’t linked to a user here")
		// An invitation offers no provider.
		_, token, err := s.store.Invitations.Create(t.Context(), other.account.ID, "new-"+email, people.RoleMember, record.Operator())
		modelstest.Must(t, err)
		s.visitor(t).get("/invitations/"+token).is(http.StatusOK).none("link", "Join with Acme ID")
	})
}

func TestAccountPageOfAUserOfTheProvider(t *testing.T) {
	t.Parallel()
	const base = "http://localhost:8080" // passkeys need a host name
	provider, clock := claimsProvider(t, base), modelstest.NewClock(time.Now())
	s := newSite(t, modelstest.SQLiteURL(t), base, models.Options{RolesFrom: provider.Config.Issuer, Now: clock.Now}).withProvider(t, provider)
	c := s.customer(t)
	email := "eve-of-" + c.email
	v := s.visitor(t)
	v.signInAs(email + "|" + c.account.ID.String() + "|owner").redirects("/agents")
	page := v.get("/account").is(http.StatusOK)
	page.says("Your organization decides who has access, so you can only sign in with Acme ID.")
	for _, button := range []string{"Disconnect Acme ID", "Set password", "Change password", "Add a passkey", "Set up authenticator app"} {
		page.none("button", button)
	}
	for path, fields := range map[string]url.Values{
		"/account/password":         {"new_password": {"correct horse battery staple"}},
		"/account/identity/removal": {},
	} {
		v.post(path, fields).is(http.StatusUnprocessableEntity).says("Your organization decides who has access")
	}
	// A password that an operator has set does not sign in.
	modelstest.Must(t, s.store.Credentials.ResetPassword(t.Context(), email, "correct horse battery staple"))
	s.visitor(t).signIn(email, "correct horse battery staple").is(http.StatusUnprocessableEntity).one("alert", "Your organization decides who has access")
	v = s.visitor(t)
	v.signInAs(email + "|" + c.account.ID.String() + "|owner").redirects("/agents")
	clock.Advance(11 * time.Minute)
	confirm := v.post("/people/invitations", url.Values{"email": {"new-" + email}, "role": {"member"}}).is(http.StatusUnprocessableEntity)
	confirm.one("link", "Sign in with Acme ID again")
	confirm.none("textbox", "Current password")

	// A user who is not connected yet reads what a connection means.
	c.get("/account").one("button", "Connect Acme ID")
	c.get("/account").says("After that, your organization decides on your access and role")
}
