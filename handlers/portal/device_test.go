package portal_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"portal/models"
	"portal/models/modelstest"

	"github.com/google/uuid"
)

// cookie returns the cookie with this name that the response sets.
func (a answer) cookie(name string) *http.Cookie {
	a.t.Helper()
	for _, line := range a.header.Values("Set-Cookie") {
		cookie := modelstest.Value(http.ParseSetCookie(line))(a.t)
		if cookie.Name == name {
			return cookie
		}
	}
	a.t.Fatalf("there is no cookie %q", name)
	return nil
}

// The cookies of a host are the same at all its ports.
func TestPortalsAtTwoPortsKeepTheirSessions(t *testing.T) {
	t.Parallel()
	databaseURL := modelstest.SQLiteURL(t)
	for _, base := range []string{"http://portal.test:%d", "https://portal.test:%d"} {
		first := newSite(t, databaseURL, fmt.Sprintf(base, 8081), models.Options{})
		second := newSite(t, modelstest.SQLiteURL(t), fmt.Sprintf(base, 8082), models.Options{})
		one, two := first.customer(t), second.customer(t)
		two.Jar = one.Jar
		one.signIn(one.email, password).redirects("/api-keys")
		two.signIn(two.email, password).redirects("/api-keys")
		one.get("/account").is(http.StatusOK).says(one.email)
		two.post("/logout", nil).redirects("/login")
		one.get("/account").is(http.StatusOK).says(one.email)
	}
}

// The previous secret still verifies cookies, but it no longer signs them.
func TestCookiesSurviveOneRotationOfTheSecret(t *testing.T) {
	plain := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{SignInLimit: 1})
	oldSecret, newSecret := strings.Repeat("old secret", 4), strings.Repeat("new secret", 4)
	c := plain.withSecrets(t, oldSecret, "").customer(t)
	during := plain.withSecrets(t, newSecret, oldSecret)
	after := plain.withSecrets(t, newSecret, "")
	c.copiedTo(during).get("/api-keys").is(http.StatusOK)
	c.copiedTo(after).get("/api-keys").redirects(toSignIn)
	fresh := during.visitor(t)
	fresh.signIn(c.email, password).redirects("/api-keys")
	fresh.copiedTo(after).get("/api-keys").is(http.StatusOK)
	// A known device is not held up by the guesses of strangers, also after a sign-out. The
	// cookie of another secret is a forged one.
	plain.visitor(t).signIn(c.email, "wrong")
	c.copiedTo(after).signIn(c.email, password).is(http.StatusTooManyRequests)
	known := c.copiedTo(during)
	known.post("/logout", nil).redirects("/login")
	known.signIn(c.email, password).redirects("/api-keys")
}

func TestCookieAttributes(t *testing.T) {
	for base, format := range map[string]string{
		httpBase: "%s", "https://portal.test": "__Host-%s", "http://portal.test:80": "%s", "https://portal.test:443": "__Host-%s",
		"http://portal.test:8080": "%s-8080", "https://portal.test:8443": "__Host-%s-8443",
	} {
		s := sqliteSite(t, base)
		c := s.customer(t)
		longest := strings.Repeat("𝔸", 100) // the longest name, in the widest characters
		page := c.post("/api-keys", generation("new", uuid.NewString())).is(http.StatusOK)
		after := c.get("/api-keys")
		if after.header.Get("Clear-Site-Data") == "" {
			t.Error("the page after a key does not clear the cache")
		}
		flash := c.post("/agents", url.Values{"name": {longest}})
		c.get("/agents").one("status", "Agent “"+longest+"” was created.")
		signedIn := s.visitor(t).signIn(c.email, password)
		for _, set := range []struct {
			answer
			name   string
			maxAge int // zero: until the browser closes, negative: deleted
		}{
			{signedIn, "session", 30 * 24 * 60 * 60},
			{signedIn, "device", 365 * 24 * 60 * 60},
			{flash, "flash", 60},
			{page, "revealed", 0},
			{after, "revealed", -1},
			{c.post("/logout", nil), "session", -1},
		} {
			got := set.cookie(fmt.Sprintf(format, set.name))
			secure := strings.HasPrefix(base, "https:") // browsers ignore other __Host- cookies
			if got.MaxAge != set.maxAge || len(got.Raw) > 4096 {
				t.Errorf("under %s the cookie is %q, not for %d s, or too long", base, got.Raw, set.maxAge)
			}
			if scope := []any{got.Path, got.Domain, got.HttpOnly, got.Secure, got.SameSite}; !slices.Equal(scope, []any{"/", "", true, secure, http.SameSiteLaxMode}) {
				t.Errorf("under %s the cookie is %q, not for the portal alone", base, got.Raw)
			}
		}
		if c.sessionCookie() != "" {
			t.Errorf("under %s the session cookie is still there after sign-out", base)
		}
	}
}

func TestFlashMessageIsShownOnceInItsSession(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, second := s.customer(t), s.customer(t)
		create := func() { c.post("/agents", url.Values{"name": {"Front desk"}}).is(http.StatusSeeOther) }
		create()
		c.fragments().get("/api-keys/changes").is(http.StatusOK)
		c.get("/nothing").is(http.StatusNotFound).none("status", "created")
		c.get("/activity").is(http.StatusOK).one("status", "Agent “Front desk” was created.")
		c.get("/agents").is(http.StatusOK).none("status", "created")

		create()
		for _, cookie := range c.Jar.Cookies(s.base) {
			if cookie.Name == "flash" {
				cookie.Value = "A" + cookie.Value[1:] // forged
				c.Jar.SetCookies(s.base, []*http.Cookie{cookie})
			}
		}
		c.get("/agents").is(http.StatusOK).none("status", "created")

		create()
		c.signIn(second.email, password).redirects("/api-keys")
		for range 2 {
			c.get("/api-keys").is(http.StatusOK).none("status", "created")
		}
	})
}
