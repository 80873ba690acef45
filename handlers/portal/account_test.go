package portal_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"portal/models"
)

const (
	firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	iPhone  = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1"
)

// elsewhere signs the customer in on another device.
func (c customer) elsewhere(userAgent string) *visitor {
	c.t.Helper()
	v := c.site.visitor(c.t)
	v.headers = []string{"User-Agent: " + userAgent}
	v.signIn(c.email, password).redirects("/api-keys")
	return v
}

func TestAccountListsTheSessionsOfItsUser(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.elsewhere(iPhone)
		here := c.elsewhere(firefox)
		s.customer(t).elsewhere("somebody else's")

		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, here)
			items := sessionItems(v.get("/account").is(http.StatusOK))
			if len(items) != 3 {
				t.Fatalf("%d sessions are listed, want 3", len(items))
			}
			items[0].says("Firefox on Linux", "This session", "UTC from 192.0.2.7", "Last active just now from 192.0.2.7")
			items[0].none("button", "End session")
			items[1].one("button", "End session")
		})
	})
}

func TestEndingOneSessionOrAllOthers(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		phone, third := c.elsewhere(iPhone), c.elsewhere(firefox)
		page := c.get("/account")
		page.one("button", "End all other sessions")
		var path string
		for _, item := range sessionItems(page) {
			if strings.Contains(item.text(), "iPhone") {
				path = item.one("button", "End session").form().attr("action")
			}
		}

		ended := follow(v, v.post(path, nil))
		ended.says("Session ended.")
		phone.get("/api-keys").redirects("/login?next=%2Fapi-keys")
		third.get("/api-keys").is(http.StatusOK)
		v.post(path, nil).is(http.StatusNotFound).says("may have already ended")

		asked := v.get("/account/other-sessions/revocation").is(http.StatusOK)
		asked.says("End 1 other session?")
		asked.none("button", "End all other sessions")
		asked.one("button", "Cancel").with("autofocus", "")
		v.get("/account?asked=yes").one("button", "End all other sessions")
		third.get("/api-keys").is(http.StatusOK)
		ended = follow(v, v.post("/account/other-sessions/revocation", nil))
		ended.says("been signed out everywhere else")
		ended.none("button", "End all other sessions")
		third.get("/api-keys").redirects("/login?next=%2Fapi-keys")
		if items := sessionItems(ended); len(items) != 1 {
			t.Errorf("%d sessions are left, want 1", len(items))
		}
		c.get("/activity").says("ended another session of Safari on iPhone", "signed out of 1 session")
	})
}

func TestChangingThePassword(t *testing.T) {
	const another = "a much longer battery staple"
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		phone := c.elsewhere(iPhone)
		changed := follow(v, v.post("/account/password", passwords(password, another)))
		changed.says("Password changed")
		c.get("/account").is(http.StatusOK)
		phone.get("/api-keys").redirects("/login?next=%2Fapi-keys")
		c.site.visitor(t).signIn(c.email, password).is(http.StatusUnprocessableEntity)
		c.site.visitor(t).signIn(c.email, another).redirects("/api-keys")
	})
}

func TestPasswordErrorsAreBesideTheWrongFields(t *testing.T) {
	const long = "a much longer battery staple"
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		for _, test := range []struct {
			current, next string
			wrong         map[string]string // the alert of each wrong field
			focused       string
		}{
			{"not the password", long, map[string]string{"Current password": "is incorrect"}, "Current password"},
			{"not the password", "short", map[string]string{"Current password": "is incorrect", "New password": "12"}, "Current password"},
			{password, "short", map[string]string{"New password": "12"}, "New password"},
			{password, "password1234", map[string]string{"New password": ""}, "New password"},
		} {
			refused := v.post("/account/password", passwords(test.current, test.next)).is(http.StatusUnprocessableEntity)
			for _, name := range []string{"Current password", "New password"} {
				field := refused.one("textbox", name)
				alert, wrong := test.wrong[name]
				if (field.attr("aria-invalid") == "true") != wrong || field.has("autofocus") != (name == test.focused) {
					t.Errorf("%+v: the mark or the focus of %s is wrong", test, name)
				}
				described := slices.ContainsFunc(refused.all("alert", alert), func(a element) bool {
					return a.attr("id") != "" && strings.Contains(field.attr("aria-describedby"), a.attr("id"))
				})
				if field.attr("type") != "password" || wrong && !described {
					t.Errorf("%+v: no alert that says %q describes %s, or it shows the password", test, alert, name)
				}
			}
			for _, input := range []string{test.current, test.next} {
				if strings.Contains(refused.body, input) {
					t.Errorf("the input %q is sent back", input)
				}
			}
		}
		empty := v.post("/account/password", passwords("", newPassword)).is(http.StatusUnprocessableEntity)
		empty.says("The current password is incorrect.", "Changing your password signs you out everywhere else.")
		c.get("/account").none("button", "Set password")
	})
}

func passwords(current, next string) url.Values {
	return url.Values{"current_password": {current}, "new_password": {next}}
}

// sessionItems returns the sessions in the list.
func sessionItems(a answer) []element {
	var items []element
	for _, item := range a.all("listitem", "") {
		if strings.Contains(item.text(), "Last active") {
			items = append(items, item)
		}
	}
	return items
}

// follow returns the page that a browser shows after a form.
func follow(v *visitor, a answer) answer {
	v.t.Helper()
	if location := a.header.Get("Location"); location != "" {
		return v.get(location).is(http.StatusOK)
	}
	return a.is(http.StatusOK)
}
