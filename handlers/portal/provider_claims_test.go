package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/handlers/handlerstest"
	"portal/models"
	"portal/models/modelstest"
)

func TestProviderDecidesAboutAccountsAndRoles(t *testing.T) {
	t.Parallel()
	provider := handlerstest.NewProvider(httpBase)
	provider.Config.Claims = true
	provider.Start(t)
	t.Cleanup(provider.Stop)
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
		modelstest.Must(t, s.store.People.Remove(t.Context(), c.account.ID, modelstest.Value(s.store.People.FindByEmail(t.Context(), c.email))(t).ID, models.Operator()))
		s.visitor(t).signInAs(as(c.account.ID, "member")).redirects("/agents")
		v.get("/settings").is(http.StatusOK)
		v.get("/activity").says(email + " stayed an owner, because the account has no other one")

		// Another account's claim, or none, does not let a known user in, and moves nobody.
		refused(as(other.account.ID, "owner"))
		refused(email)
		if again := modelstest.Value(s.store.People.FindByEmail(t.Context(), email))(t); again.AccountID != c.account.ID || again.Role != models.RoleOwner {
			t.Errorf("the user is %+v", again)
		}
		if people := modelstest.Value(s.store.People.List(t.Context(), other.account.ID, models.Page{Limit: 9}))(t); len(people.Items) != 1 {
			t.Errorf("the other account has %d people", len(people.Items))
		}
		// The email of another user connects nothing without the trust in it.
		taken := s.visitor(t).signInAs(strings.Join([]string{other.email, other.account.ID.String(), "member"}, "|"))
		taken.is(http.StatusForbidden).one("alert", "isn’t linked to a user here")
		// An invitation offers no provider.
		_, token, err := s.store.Invitations.Create(t.Context(), other.account.ID, "new-"+email, models.RoleMember, models.Operator())
		modelstest.Must(t, err)
		s.visitor(t).get("/invitations/"+token).is(http.StatusOK).none("link", "Join with Acme ID")
	})
}
