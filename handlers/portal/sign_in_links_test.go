package portal_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
)

// link creates a sign-in link for a new member of the customer's account. It returns its path and
// the member's email.
func (c customer) link() (path, email string) {
	c.t.Helper()
	user := modelstest.Value(c.store.People.Add(c.t.Context(), c.account.ID, models.NewUser{Email: "member-of-" + c.email, Role: models.RoleMember}, models.Operator()))(c.t)
	token, _, err := c.store.SignIn.CreateLink(c.t.Context(), c.account.ID, user.ID, models.Operator())
	modelstest.Must(c.t, err)
	return "/sign-in-links/" + token, user.Email
}

func TestSignInLinkIsUsedByItsButtonOnly(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, other := s.customer(t), s.customer(t)
		path, email := c.link()
		scanner, v := s.visitor(t), other.copied() // a browser in which another customer is signed in
		for range 2 {
			scanner.get(path).is(http.StatusOK)
		}
		page := v.get(path).is(http.StatusOK)
		page.one("heading", "Sign in")
		page.one("button", "Continue")
		page.says(email)
		if got := page.header.Get("Referrer-Policy"); got != "strict-origin" {
			t.Errorf("Referrer-Policy %q", got)
		}

		v.post(path, nil).redirects("/api-keys")
		v.get("/account").is(http.StatusOK).says(email)
		other.get("/api-keys").is(http.StatusSeeOther) // its session has ended

		for _, again := range []answer{scanner.get(path), scanner.post(path, nil), v.get(path)} {
			again.is(http.StatusGone)
			again.one("heading", "Sign in")
			again.one("alert", "already been used or has expired")
		}
		scanner.get("/api-keys").is(http.StatusSeeOther)
		v.get("/account").is(http.StatusOK).says(email) // a used link ends nothing
	})
}

func TestSignInLinkThatDoesNotWork(t *testing.T) {
	clock := modelstest.NewClock(time.Now())
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{Now: clock.Now})
	c := s.customer(t)
	path, _ := c.link()
	v := s.visitor(t)
	for _, wrong := range []string{path + "x", "/sign-in-links/x", strings.ToUpper(path)[:20]} {
		if answer := v.get(wrong); answer.status != http.StatusGone && answer.status != http.StatusNotFound {
			t.Errorf("%s: %d", wrong, answer.status)
		}
		v.post("/sign-in-links/x", nil).is(http.StatusGone)
	}
	for _, disabled := range []bool{true, false} {
		modelstest.Must(t, s.store.Accounts.SetDisabled(t.Context(), c.account.ID, disabled, models.Operator()))
		if disabled {
			v.get(path).is(http.StatusGone)
		}
	}
	path, _ = s.customer(t).link()
	v.get(path).is(http.StatusOK)
	modelstest.Exec(t, s.databaseURL, "UPDATE users SET disabled_at = created_at")
	v.get(path).is(http.StatusUnprocessableEntity).one("alert", "disabled")
	v.post(path, nil).is(http.StatusUnprocessableEntity)
	modelstest.Exec(t, s.databaseURL, "UPDATE users SET disabled_at = NULL")
	clock.Advance(5 * time.Minute)
	v.get(path).is(http.StatusGone).one("alert", "has expired")
	v.post(path, nil).is(http.StatusGone)
}
