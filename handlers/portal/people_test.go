package portal_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// colleague adds a user to the customer's account and signs the user in.
func (c customer) colleague(role people.Role) customer {
	c.t.Helper()
	email := uuid.NewString() + "@example.com"
	modelstest.Value(c.store.People.Add(c.t.Context(), c.account.ID, people.NewUser{Email: email, Password: password, Role: role}, record.Operator()))(c.t)
	other := customer{visitor: c.site.visitor(c.t), email: email, account: c.account}
	other.signIn(email, password).redirects("/api-keys")
	return other
}

// id returns the id of the customer's user.
func (c customer) id() string {
	c.t.Helper()
	users := modelstest.Value(c.store.People.List(c.t.Context(), c.account.ID, value.Page{Limit: 100}))(c.t)
	for _, user := range users.Items {
		if user.Email == c.email {
			return user.ID.String()
		}
	}
	c.t.Fatalf("%s is not in the account", c.email)
	return ""
}

// person returns the row of the person or invitation with this email.
func (a answer) person(email string) element {
	a.t.Helper()
	for _, row := range a.all("row", "") {
		if cells := row.all("cell", ""); len(cells) == 4 && containsText(answer{element: cells[0]}, email) {
			return row
		}
	}
	a.t.Fatalf("%s is not in:\n%s", email, a.text())
	return element{}
}

func TestPeopleAreListed(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		other := c.customer(t)
		member := c.colleague(people.RoleMember)
		absent := modelstest.Value(c.store.People.Add(t.Context(), c.account.ID, people.NewUser{Email: "absent-" + c.email, Role: people.RoleOwner}, record.Operator()))(t)
		for viewer, buttons := range map[customer]int{c: 6, member: 0} {
			page := viewer.like(v).get("/people").is(http.StatusOK)
			table := page.one("table", "People")
			for i, name := range []string{"Email", "Role", "Last sign-in", "Actions"} {
				table.all("columnheader", "")[i].exactly(name)
			}
			page.person(c.email).all("cell", "")[1].exactly("Owner")
			page.person(member.email).all("cell", "")[1].exactly("Member")
			page.person(member.email).one("time", "just now")
			page.person(absent.Email).all("cell", "")[2].exactly("Never")
			page.person(viewer.email).says("You")
			if got := table.all("button", ""); len(got) != buttons {
				t.Errorf("%d buttons, want %d", len(got), buttons)
			}
			if containsText(page, other.email) {
				t.Error("shows a user of another account")
			}
		}
		c.get("/people").one("button", "Invite")
		member.get("/people").none("button", "Invite")
		member.like(v).post("/people/"+c.id()+"/removal", nil).is(http.StatusForbidden).
			says("Only owners can change the people and the settings of this account.")
		member.get("/people").one("navigation", "Main").one("link", "People").with("aria-current", "page")
	})
}

func TestRolesAreChanged(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		member := c.colleague(people.RoleMember)
		form := c.get("/people").person(member.email).one("button", "Make owner").form()
		asked := v.get(form.attr("action")).is(http.StatusOK).person(member.email)
		asked.says("Make " + member.email + " an owner?")
		asked.one("button", "Cancel")
		form = asked.one("button", "Confirm owner").form()
		changed := follow(v, v.post(form.attr("action"), url.Values{"role": {"owner"}}))
		changed.says(member.email + " is now an owner.")
		changed.person(member.email).one("button", "Make member")
		member.get("/people").one("button", "Invite") // at once

		own := "/people/" + c.id()
		asked = v.get(own + "/role").is(http.StatusOK).person(c.email)
		asked.says("Become a member?")
		asked.one("button", "Cancel")
		asked.one("button", "Confirm member")
		follow(v, v.post(own+"/role", url.Values{"role": {"member"}})).none("button", "Make owner")
		for _, name := range []string{"Make member", "Remove"} {
			member.get("/people").person(member.email).one("button", name).with("disabled", "")
		}
		v.post(own+"/role", url.Values{"role": {"owner"}}).is(http.StatusForbidden)
		last := member.like(v)
		refused := last.post("/people/"+member.id()+"/role", url.Values{"role": {"member"}}).is(http.StatusConflict)
		refused.one("alert", "You are the only owner. Make someone else an owner first.")
		refused.person(member.email).one("button", "Make member")
		last.post("/people/"+member.id()+"/removal", nil).is(http.StatusConflict).one("alert", "You are the only owner. Make someone else an owner first.")
		absent := people.NewUser{Email: "absent-" + c.email, Role: people.RoleOwner}
		modelstest.Value(c.store.People.Add(t.Context(), c.account.ID, absent, record.Operator()))(t)
		last.post("/people/"+member.id()+"/removal", nil).is(http.StatusConflict).one("alert", "an owner who can sign in with")
		last.post(own+"/role", url.Values{"role": {"admin"}}).is(http.StatusUnprocessableEntity)
		last.post("/people/"+uuid.NewString()+"/role", url.Values{"role": {"owner"}}).is(http.StatusNotFound)
	})
}

func TestPersonIsRemoved(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		member := c.colleague(people.RoleMember)
		member.post("/api-keys", url.Values{"label": {"of the member"}, "form_id": {uuid.NewString()}}).is(http.StatusOK)
		key := c.keys()[0]
		c.get("/api-keys/" + key.ID.String()).is(http.StatusOK).says(" by " + member.email)
		elsewhere := member.copiedTo(newSiteOn(t, c.site))
		elsewhere.get("/api-keys").is(http.StatusOK)

		path := "/people/" + member.id()
		asked := v.get(path + "/removal").is(http.StatusOK)
		row := asked.person(member.email)
		row.says("Remove "+member.email+"?", "1 active key keeps working")
		row.one("button", "Confirm removal")
		cancelled := v.get(path)
		follow(v, cancelled).person(member.email).one("button", "Remove")

		removed := follow(v, v.post(path+"/removal", nil))
		removed.says(member.email+" was removed and signed out.", "generated a key that is still active", "of the member", key.Masked())
		removed.one("link", "Rotate").with("href", "/api-keys/"+key.ID.String()+"/rotation")
		elsewhere.get("/api-keys").is(http.StatusSeeOther)
		follow(member.visitor, member.get("/people")).one("status", "You were removed from Example Ltd.")
		if len(c.keys()) != 1 {
			t.Error("the key is gone")
		}
		v.get(path).is(http.StatusNotFound)
		v.post(path+"/removal", nil).is(http.StatusNotFound)
		c.get("/api-keys/" + key.ID.String()).is(http.StatusOK).says(" by " + member.email)
	})
}

// newSiteOn returns another instance of the portal on the same database.
func newSiteOn(t *testing.T, s *site) *site {
	t.Helper()
	return newSite(t, s.databaseURL, httpBase, models.Options{})
}

func TestOwnerLeavesTheAccount(t *testing.T) {
	asCustomer(t, models.Options{}, func(_ *testing.T, c customer, v *visitor) {
		owner := c.colleague(people.RoleOwner)
		v = owner.like(v)
		v.get("/people/" + owner.id() + "/removal").person(owner.email).says("Leave this account?")
		v.post("/people/"+owner.id()+"/removal", nil).redirects("/login")
		owner.get("/login").is(http.StatusOK).one("status", "You have left Example Ltd.")
		owner.get("/people").is(http.StatusSeeOther)
	})
}

func TestChangesOfPeopleTakeAFreshSignIn(t *testing.T) {
	clock := modelstest.NewClock(time.Now())
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{Now: clock.Now})
	c := s.customer(t)
	member := c.colleague(people.RoleMember)
	clock.Advance(10 * time.Minute)
	path, form := "/people/"+member.id()+"/role", url.Values{"role": {"owner"}}
	asked := c.post(path, form).is(http.StatusForbidden)
	asked.one("textbox", "Current password")
	c.get("/people").person(member.email).one("button", "Make owner")
	form.Set("current_password", password)
	follow(c.visitor, c.post(path, form)).says("is now an owner")
	follow(c.visitor, c.post("/people/"+member.id()+"/removal", nil)).says("was removed")
}
