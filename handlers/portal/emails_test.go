package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func emails(password, email string) url.Values {
	return url.Values{"current_password": {password}, "email": {email}}
}

func TestChangingTheEmail(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			phone := c.elsewhere(iPhone)
			next := "New." + c.email
			v := as.of(t, c.visitor)
			changed := follow(v, v.post("/account/email", emails(password, " "+next+" ")))
			changed.says("Email changed.", next)
			c.get("/account").is(http.StatusOK).says(next)
			phone.get("/api-keys").is(http.StatusOK)
			c.get("/activity").says("changed the email of " + c.email + " to " + next)
			s.visitor(t).signIn(c.email, password).is(http.StatusUnprocessableEntity)
			s.visitor(t).signIn(strings.ToLower(next), password).redirects("/api-keys")
		})
	})
}

func TestEmailIsRefusedWithTheInputKept(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c, other := s.customer(t), s.customer(t)
			v := as.of(t, c.visitor)
			for _, test := range []struct{ password, email, field, alert string }{
				{"not the password", "new@example.com", "Your password", "The password is incorrect."},
				{password, "new", "New email", "Enter an email address"},
				{password, c.email, "New email", "already your email"},
				{password, strings.ToUpper(other.email), "New email", "already in use"},
				{password, password, "New email", "Enter an email address"},
			} {
				refused := v.post("/account/email", emails(test.password, test.email)).is(http.StatusUnprocessableEntity)
				refused.one("alert", test.alert)
				field := refused.one("textbox", test.field)
				if field.attr("aria-invalid") != "true" || !field.has("autofocus") {
					t.Errorf("%+v: the field is not marked or not focused", test)
				}
				if got := refused.one("textbox", "New email").attr("value"); got != test.email {
					t.Errorf("%+v: the field holds %q", test, got)
				}
				if test.password != test.email && strings.Contains(refused.body, test.password) {
					t.Errorf("%+v: the password is sent back", test)
				}
			}
			c.get("/account").says(c.email)
		})
	})
}

func TestGuessesThatChangeTheEmailAreLimited(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		for range 10 {
			c.post("/account/email", emails("wrong", "new@example.com")).is(http.StatusUnprocessableEntity)
		}
		c.post("/account/email", emails(password, "new@example.com")).is(http.StatusTooManyRequests).one("alert", "Too many incorrect passwords")
	})
}
