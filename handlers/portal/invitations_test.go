package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// invite invites a person as a member and returns the path of the link.
func (c customer) invite(email string) string {
	c.t.Helper()
	page := c.post("/people/invitations", url.Values{"email": {email}, "role": {"member"}}).is(http.StatusOK)
	return strings.TrimPrefix(page.one("textbox", "Invitation link").attr("value"), httpBase)
}

func TestInvitationIsShownOnceAndUsedOnce(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		email := "bob-" + c.email
		created := v.post("/people/invitations", url.Values{"email": {" " + email}, "role": {"member"}}).is(http.StatusOK)
		created.one("heading", "Invitation created")
		field := created.one("textbox", "Invitation link")
		if !field.has("readonly") || strings.Count(created.body, field.attr("value")) != 1 {
			t.Errorf("the link is not shown once, or not read-only: %v", field.node.Attr)
		}
		path, ok := strings.CutPrefix(field.attr("value"), httpBase)
		if !ok {
			t.Fatalf("the link is %s", field.attr("value"))
		}
		listed := c.get("/people").is(http.StatusOK)
		row := listed.person(email)
		row.all("cell", "")[1].exactly("Invited")
		row.one("button", "Cancel invitation")
		if strings.Contains(listed.body, path) {
			t.Error("the list has the link")
		}

		guest := c.site.visitor(t).like(v)
		page := c.site.visitor(t).get(path).is(http.StatusOK)
		page.one("heading", "Join Example Ltd")
		page.says(email, "a member")
		page.headed("Referrer-Policy", "strict-origin")
		refused := guest.post(path, url.Values{"password": {"short"}}).is(http.StatusUnprocessableEntity)
		refused.one("alert", "12 characters")
		if refused.one("textbox", "Password").has("value") {
			t.Error("the password is in the page")
		}
		guest.post(path, url.Values{"password": {password}}).redirects("/api-keys")
		guest.get("/people").is(http.StatusOK).person(email).says("You", "Member")
		v.get("/activity").says("accepted the invitation to this account")

		// Somebody to whom the link was forwarded comes too late.
		late := c.site.visitor(t).like(v)
		for _, again := range []answer{late.get(path), late.post(path, url.Values{"password": {password}})} {
			again.is(http.StatusGone).one("alert", "no longer valid. It may have been used")
		}
		late.get("/people").redirects("/login?next=%2Fpeople")
	})
}

func TestInvitationIsSentAgain(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		email := "bob-" + c.email
		ended := c.invite(email)
		form := c.get("/people").person(email).one("button", "Send again").form()
		again := v.post(form.attr("action"), nil).is(http.StatusOK)
		link := strings.TrimPrefix(again.one("textbox", "Invitation link").attr("value"), httpBase)
		c.site.visitor(t).get(ended).is(http.StatusGone)
		c.site.visitor(t).get(link).is(http.StatusOK).one("heading", "Join Example Ltd")
	})
}

func TestInvitationThatEnded(t *testing.T) {
	clock := modelstest.NewClock(time.Now())
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{Now: clock.Now})
	bothVoices(t, func(t *testing.T, as voice) {
		c, other := s.customer(t), s.customer(t)
		expired := other.invite("expired-" + c.email)
		clock.Advance(7 * value.Day)
		c.signIn(c.email, password).redirects("/api-keys")
		other.signIn(other.email, password).redirects("/api-keys")
		cancelled := c.invite("cancelled-" + c.email)
		v := as.of(t, c.visitor)
		cancel := c.get("/people").person("cancelled-"+c.email).one("button", "Cancel invitation").form().attr("action")
		as.of(t, other.visitor).post(cancel, nil).is(http.StatusNotFound)
		follow(v, v.post(cancel, nil)).says("The invitation for cancelled-" + c.email + " was cancelled.")
		v.post(cancel, nil).is(http.StatusNotFound)
		guest := as.of(t, s.visitor(t))
		guest.get(expired).is(http.StatusGone).one("alert", "This invitation is no longer valid, because it has expired.")
		guest.post(expired, url.Values{"password": {password}}).is(http.StatusGone)
		for _, path := range []string{cancelled, "/invitations/guess", cancelled + "x"} {
			guest.get(path).is(http.StatusGone).one("alert", "This invitation is no longer valid. It may have been used or cancelled.")
			guest.post(path, url.Values{"password": {password}}).is(http.StatusGone)
		}
		if containsText(c.get("/people"), "Invited") {
			t.Error("an invitation that ended is listed")
		}
	})
}

func TestInvitationIsRefusedWithTheInputKept(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		other := c.customer(t)
		member := c.colleague(people.RoleMember)
		c.invite("bob-" + c.email)
		for email, message := range map[string]string{
			"eve": "Enter an email address", "bob-" + c.email: "already been invited",
			member.email: "already in this account", other.email: "already in use",
		} {
			refused := v.post("/people/invitations", url.Values{"email": {email}, "role": {"owner"}}).is(http.StatusUnprocessableEntity)
			refused.one("alert", message)
			refused.one("textbox", "Email").with("value", email)
		}
		v.post("/people/invitations", url.Values{"email": {"x-" + c.email}, "role": {"admin"}}).is(http.StatusUnprocessableEntity).one("alert", "role")
	})
}

func TestInvitationOpenedBySomeoneSignedIn(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, other := s.customer(t), s.customer(t)
		path := c.invite("bob-" + c.email)
		copied := other.copied()
		other.get(path).is(http.StatusOK).says("You’re signed in as " + other.email)
		other.post(path, url.Values{"password": {password}}).redirects("/api-keys")
		other.get("/account").is(http.StatusOK).says("bob-" + c.email)
		copied.get("/account").is(http.StatusSeeOther) // the old session has ended
	})
}

func TestInvitationPageSaysWhetherItWasMailed(t *testing.T) {
	t.Parallel()
	for name, mail := range map[string]bool{"with SMTP": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{Mail: mail})
			bothVoices(t, func(t *testing.T, as voice) {
				c := s.customer(t)
				email := "bob-" + c.email
				for i := range 4 {
					hint := "We’ll email them a one-time link."
					if said := strings.Contains(c.get("/people").is(http.StatusOK).body, hint); said != mail {
						t.Errorf("the form says that it sends a mail: %v, want %v", said, mail)
					}
					created := as.of(t, c.visitor).post("/people/invitations", url.Values{"email": {email}, "role": {"member"}}).is(http.StatusOK)
					created.one("textbox", "Invitation link")
					// The limit of mails of one account to one address.
					mailed := mail && i < 3
					if said := strings.Contains(created.text(), "We’ve emailed "+email); said != mailed {
						t.Errorf("invitation %d says that it was mailed: %v, want %v", i+1, said, mailed)
					}
					if said := strings.Contains(created.body, hint); as.htmx && said != mail {
						t.Errorf("the form after invitation %d says that it sends a mail: %v, want %v", i+1, said, mail)
					}
					if mailed {
						// A mail that is never sent does not count.
						s.mailedToken(t, email)
					}
					pending := modelstest.Value(s.store.Invitations.Pending(t.Context(), c.account.ID))(t)
					modelstest.Value(s.store.Invitations.Cancel(t.Context(), c.account.ID, pending[0].ID, record.Operator()))(t)
				}
			})
		})
	}
}
