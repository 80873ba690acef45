package portal_test

import (
	"errors"
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

const newPassword = "four words of another kind"

// mailedToken returns the token of the link in the next mail for this email, or "" if no such mail
// is sent.
func (s *site) mailedToken(t testing.TB, email string) string {
	t.Helper()
	for {
		mail, token, err := s.store.Outbox.Claim(t.Context())
		if errors.Is(err, value.ErrNoMail) {
			return ""
		}
		modelstest.Must(t, err)
		modelstest.Must(t, s.store.Outbox.Sent(t.Context(), mail))
		if token != "" && mail.Recipient == email {
			return token
		}
	}
}

func resetOf(password string) url.Values { return url.Values{"new_password": {password}} }

func TestForgottenPasswordIsReset(t *testing.T) {
	asCustomer(t, models.Options{Mail: true}, func(t *testing.T, c customer, v *visitor) {
		other := c.customer(t)
		v = other.like(v) // another customer's browser
		c.site.visitor(t).get("/login").one("link", "Forgot password?").with("href", "/password-resets")
		v.get("/password-resets").is(http.StatusOK).one("heading", "Reset your password")
		v.post("/password-resets", url.Values{"email": {"no address"}}).is(http.StatusUnprocessableEntity).one("alert", "Enter an email address")
		var answers []string
		for _, email := range []string{c.email, "nobody@example.com", c.email} {
			sent := v.post("/password-resets", url.Values{"email": {" " + email}}).is(http.StatusOK)
			sent.says("If there is an account with the email " + email)
			answers = append(answers, strings.ReplaceAll(sent.text(), email, ""))
		}
		if answers[0] != answers[1] {
			t.Errorf("the answers differ:\n%s\n%s", answers[0], answers[1])
		}
		link, second := "/password-resets/"+c.mailedToken(t, c.email), "/password-resets/"+c.mailedToken(t, c.email)
		if c.mailedToken(t, "nobody@example.com") != "" || link == second {
			t.Fatal("a link for nobody, or the same link twice")
		}

		for range 2 { // looking at the page does not use the link
			page := c.site.visitor(t).get(link).is(http.StatusOK)
			page.one("heading", "Set a new password")
			page.says(c.email)
			page.headed("Referrer-Policy", "strict-origin")
		}
		v.post(link, resetOf("short")).is(http.StatusUnprocessableEntity).one("alert", "12")
		c.get("/api-keys").is(http.StatusOK)
		v.post(link, resetOf(newPassword)).redirects("/api-keys")
		voice{}.of(t, v).get("/account").is(http.StatusOK).says(c.email)
		c.get("/api-keys").is(http.StatusSeeOther)
		c.site.visitor(t).signIn(c.email, password).is(http.StatusUnprocessableEntity)
		c.site.visitor(t).signIn(c.email, newPassword).redirects("/api-keys")
		for _, used := range []string{link, second, "/password-resets/x"} {
			v.get(used).is(http.StatusGone).one("alert", "already been used or has expired")
			v.post(used, resetOf(password)).redirects(used)
		}
		if activity := v.get("/activity"); !strings.Contains(activity.text(), c.email+" reset the password of "+c.email) {
			t.Errorf("the activity lacks the reset: %s", activity.text())
		}
	})
}

func TestDisabledUserGetsNoResetLink(t *testing.T) {
	onSiteWith(t, models.Options{Mail: true}, func(t *testing.T, s *site) {
		c := s.customer(t)
		v := s.visitor(t)
		v.post("/password-resets", url.Values{"email": {c.email}})
		token := s.mailedToken(t, c.email)
		modelstest.Exec(t, s.databaseURL, "UPDATE users SET disabled_at = created_at")
		v.get("/password-resets/"+token).is(http.StatusUnprocessableEntity).one("alert", "disabled")
		v.post("/password-resets/"+token, resetOf(newPassword)).redirects("/password-resets/" + token)
		v.post("/password-resets", url.Values{"email": {c.email}}).is(http.StatusOK).says("If there is an account")
		if s.mailedToken(t, c.email) != "" {
			t.Error("a disabled user got a link")
		}
	})
}

func TestWithoutMailNobodyCanAskForALink(t *testing.T) {
	s := sqliteSite(t, httpBase)
	v := s.visitor(t)
	for _, path := range []string{"/password-resets", "/password-resets/x"} {
		v.get(path).is(http.StatusNotFound)
		v.post(path, url.Values{"email": {"ada@example.com"}, "new_password": {newPassword}}).is(http.StatusNotFound)
	}
}

// link creates a sign-in link for a new member of the customer's account. It returns its path and
// the member's email.
func (c customer) link() (path, email string) {
	c.t.Helper()
	user := modelstest.Value(c.store.People.Add(c.t.Context(), c.account.ID, people.NewUser{Email: "member-of-" + c.email, Role: people.RoleMember}, record.Operator()))(c.t)
	link, err := c.store.SignIn.CreateLink(c.t.Context(), c.account.ID, user.ID, record.Operator())
	modelstest.Must(c.t, err)
	return "/sign-in-links/" + link.Token, user.Email
}

func TestSignInLinkIsUsedByItsButtonOnly(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, other := s.customer(t), s.customer(t)
		path, email := c.link()
		// A browser in which another customer is signed in.
		scanner, v := s.visitor(t), other.copied()
		for range 2 {
			scanner.get(path).is(http.StatusOK)
		}
		page := v.get(path).is(http.StatusOK)
		page.one("heading", "Sign in")
		page.one("button", "Continue")
		page.says(email)
		page.headed("Referrer-Policy", "strict-origin")

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

func TestSignInLinkLeadsToAPage(t *testing.T) {
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{})
	for section, leads := range map[string]string{
		// Without a LiveKit server.
		"agents": "/agents", "integrate": "/integrate", "": "/api-keys", "calls": "/api-keys",
		"/example.com": "/api-keys", "https://example.com": "/api-keys", "logout": "/api-keys", "../agents": "/api-keys",
	} {
		v := s.visitor(t)
		action, _ := s.customer(t).link()
		if section != "" {
			action += "?" + url.Values{"page": {section}}.Encode()
		}
		v.get(action).is(http.StatusOK).one("button", "Continue").form().with("action", action)
		v.post(action, nil).redirects(leads)
	}
}

// People copy links with what stands around them, and programs find too much of one in a text.
func TestLinkWithWhatStandsAroundIt(t *testing.T) {
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{})
	path, _ := s.customer(t).link()
	v := s.visitor(t)
	for _, end := range []string{".", "%3E", ">", ")", ",", "%20", "%0A", "%22", "%E2%80%8B", "=", "*"} {
		v.get(path+end).is(http.StatusOK).one("button", "Continue")
	}
	v.post(path+".", nil).redirects("/api-keys")
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
		modelstest.Must(t, s.store.Accounts.SetDisabled(t.Context(), c.account.ID, disabled, record.Operator()))
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
