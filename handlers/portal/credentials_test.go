package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"portal/handlers"
	"portal/models"
	"portal/models/modelstest"
)

func emails(password, email string) url.Values {
	return url.Values{"current_password": {password}, "email": {email}}
}

// changeEmail asks for another email and confirms it with the link in the mail. It returns the
// customer with this email.
func (c customer) changeEmail(email string) customer {
	c.t.Helper()
	c.post("/account/email", emails(password, email)).redirects("/account")
	c.site.visitor(c.t).post("/email-changes/"+c.site.mailedToken(c.t, email), nil).is(http.StatusOK)
	c.email = email
	return c
}

func TestPendingEmailIsOnTheAccountPage(t *testing.T) {
	asCustomer(t, models.Options{Mail: true}, func(t *testing.T, c customer, v *visitor) {
		next := "new-" + c.email
		follow(v, v.post("/account/email", emails(password, next)))
		first := "/email-changes/" + c.mailedToken(t, next)
		page := c.get("/account")
		page.says("Waiting for you to confirm " + next)
		follow(v, v.post(page.one("button", "Send again").form().attr("action"), nil)).says("Open the link")
		second := "/email-changes/" + c.mailedToken(t, next)
		mailbox := c.site.visitor(t)
		mailbox.get(first).is(http.StatusGone)
		mailbox.get(second).is(http.StatusOK)
		follow(v, v.post(page.one("button", "Cancel change").form().attr("action"), nil)).none("button", "Cancel change")
		mailbox.get(second).is(http.StatusGone)
		follow(v, v.post("/account/email/mail", nil)).says("Enter the new email again.")
	})
}

func TestChangingTheEmail(t *testing.T) {
	asCustomer(t, models.Options{Mail: true}, func(t *testing.T, c customer, v *visitor) {
		phone := c.elsewhere(iPhone)
		next := "New." + c.email
		follow(v, v.post("/account/email", emails(password, "first-"+c.email)))
		replaced := "/email-changes/" + c.mailedToken(t, "first-"+c.email)
		asked := follow(v, v.post("/account/email", emails(password, " "+next+" ")))
		asked.says("Open the link", next, c.email)
		link := "/email-changes/" + c.mailedToken(t, next)
		c.site.visitor(t).signIn(next, password).is(http.StatusUnprocessableEntity)

		mailbox := c.site.visitor(t) // the mail is read on another device
		for range 2 {                // looking at the page does not use the link
			page := mailbox.get(link).is(http.StatusOK)
			page.one("heading", "Confirm your new email")
			page.one("button", "Confirm email")
			page.says(next)
			page.headed("Referrer-Policy", "strict-origin")
		}
		c.get("/account").is(http.StatusOK).says(c.email)
		mailbox.post(link, nil).is(http.StatusOK).says("Email changed", next)
		mailbox.get("/account").is(http.StatusSeeOther)
		c.get("/account").is(http.StatusOK).says(next)
		phone.get("/api-keys").is(http.StatusOK)
		c.get("/activity").says("changed the email of " + c.email + " to " + next)
		c.site.visitor(t).signIn(c.email, password).is(http.StatusUnprocessableEntity)
		c.site.visitor(t).signIn(strings.ToLower(next), password).redirects("/api-keys")
		for _, used := range []string{link, replaced, "/email-changes/x"} {
			mailbox.get(used).is(http.StatusGone).one("alert", "already been used or has expired")
			mailbox.post(used, nil).is(http.StatusGone).one("alert", "already been used or has expired")
		}
	})
}

// The page answers alike for an email that is in use, which gets no link.
func TestEmailThatIsTakenIsNotRevealed(t *testing.T) {
	onSiteWith(t, models.Options{Mail: true}, func(t *testing.T, s *site) {
		c, other := s.customer(t), s.customer(t)
		for range 2 {
			s.mailedToken(t, "") // the mails about these sign-ins
		}
		ask := func(email string) string {
			page := follow(c.visitor, c.post("/account/email", emails(password, email)))
			return strings.ReplaceAll(page.one("status", "Open the link").text(), email, "")
		}
		if free, taken := ask("free-"+c.email), ask(strings.ToUpper(other.email)); free != taken {
			t.Errorf("the answers differ:\n%s\n%s", free, taken)
		}
		if s.mailedToken(t, strings.ToUpper(other.email)) != "" {
			t.Error("the user with the email gets a link")
		}
	})
}

func TestWithoutMailAnOperatorChangesEmails(t *testing.T) {
	s := sqliteSite(t, httpBase)
	c := s.customer(t)
	page := c.get("/account").is(http.StatusOK)
	page.none("textbox", "New email")
	if containsText(page, "contact support") {
		t.Error("it names a support that has no address")
	}
	supported := s.with(t, func(d *handlers.Deps) { d.SupportURL = "https://support.example.com/" })
	c.copiedTo(supported).get("/account").is(http.StatusOK).one("link", "contact support").with("href", "https://support.example.com/")
	c.post("/account/email", emails(password, "new@example.com")).is(http.StatusNotFound)
	c.get("/email-changes/x").is(http.StatusNotFound)
}

func TestEmailIsRefusedWithTheInputKept(t *testing.T) {
	asCustomer(t, models.Options{Mail: true}, func(t *testing.T, c customer, v *visitor) {
		for _, test := range []struct{ password, email, field, alert string }{
			{"not the password", "new@example.com", "Your password", "The password is incorrect."},
			{"", "new@example.com", "Your password", "The password is incorrect."},
			{password, "new", "New email", "Enter an email address"},
			{password, strings.ToUpper(c.email), "New email", "already your email"},
			{password, password, "New email", "Enter an email address"},
		} {
			refused := v.post("/account/email", emails(test.password, test.email)).is(http.StatusUnprocessableEntity)
			refused.one("alert", test.alert)
			refused.one("textbox", test.field).with("aria-invalid", "true").with("autofocus", "")
			refused.one("textbox", "New email").with("value", test.email)
			if test.password != "" && test.password != test.email && strings.Contains(refused.body, test.password) {
				t.Errorf("%+v: the password is sent back", test)
			}
		}
		c.get("/account").says(c.email)
	})
}

const firstPassword = "a much longer battery staple"

// newMember signs a new member of the customer's account in with a link. The member has no
// password.
func (c customer) newMember() (v *visitor, email string) {
	c.t.Helper()
	path, email := c.link()
	v = c.site.visitor(c.t)
	v.post(path, nil).redirects("/api-keys")
	return v, email
}

func TestFormForTheFirstPasswordAsksForNoOther(t *testing.T) {
	asCustomer(t, models.Options{Mail: true}, func(_ *testing.T, c customer, v *visitor) {
		member, _ := c.newMember()
		page := member.get("/account").is(http.StatusOK)
		page.one("heading", "Set a password")
		page.none("textbox", "Current password")
		page.none("textbox", "Your password")
		page.one("button", "Set password").form().with("action", "/account/password")
		v = member.like(v)
		refused := v.post("/account/password", passwords("", "short")).is(http.StatusUnprocessableEntity)
		refused.one("alert", "12")
		refused.none("textbox", "Current password")
		refused.one("textbox", "New password").with("aria-invalid", "true").with("autofocus", "")

		set := follow(v, v.post("/account/password", passwords("", firstPassword)))
		set.says("Password set.", "Change password")
		for _, name := range []string{"Current password", "Your password"} {
			set.one("textbox", name)
			member.get("/account").is(http.StatusOK).one("textbox", name)
		}
	})
}

func TestFirstPasswordAndEmailTakeAFreshSignIn(t *testing.T) {
	clock := modelstest.NewClock(time.Now())
	asCustomer(t, models.Options{Now: clock.Now, Mail: true}, func(_ *testing.T, c customer, v *visitor) {
		member, email := c.newMember()
		v = member.like(v)
		clock.Advance(10*time.Minute - time.Second)
		follow(v, v.post("/account/email", emails("", "new-"+email))).says("Open the link", "new-"+email)
		clock.Advance(time.Second)
		for _, refused := range []answer{
			v.post("/account/password", passwords("", firstPassword)),
			v.post("/account/email", emails("", email)),
		} {
			refused.is(http.StatusUnprocessableEntity).one("alert", "Sign in with a new sign-in link")
			refused.none("textbox", "Current password")
			refused.none("textbox", "Your password")
		}
		page := member.get("/account").is(http.StatusOK)
		page.one("button", "Set password")
		page.says(email)
	})
}
