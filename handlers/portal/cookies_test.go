package portal_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

func TestFlashMessageIsShownOnTheNextPageOnly(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.post("/agents", url.Values{"name": {"Front desk"}}).redirects("/agents")
		c.fragments().get("/api-keys/changes").is(http.StatusOK)
		c.get("/nothing").is(http.StatusNotFound).none("status", "created")
		c.get("/activity").is(http.StatusOK).one("status", "Agent “Front desk” was created.")
		c.get("/agents").is(http.StatusOK).none("status", "created")
	})
}

func TestFlashMessageOfAnotherSessionIsDropped(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		first, second := s.customer(t), s.customer(t)
		first.post("/agents", url.Values{"name": {"Front desk"}}).redirects("/agents")
		first.signIn(second.email, password).redirects("/api-keys")
		first.get("/api-keys").is(http.StatusOK).none("status", "created")
		first.get("/agents").is(http.StatusOK).none("status", "created")
	})
}

func TestForgedFlashMessageIsDropped(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.post("/agents", url.Values{"name": {"Front desk"}}).redirects("/agents")
		jar := c.Jar
		for _, cookie := range jar.Cookies(s.base) {
			if cookie.Name == "flash" {
				cookie.Value = "A" + cookie.Value[1:]
				jar.SetCookies(s.base, []*http.Cookie{cookie})
			}
		}
		c.get("/agents").is(http.StatusOK).none("status", "created")
	})
}

func TestFlashCookieAttributes(t *testing.T) {
	const attributes = `; Path=/; Max-Age=60; HttpOnly`
	for base, want := range map[string]string{
		"http://portal.test":  `^flash=[\w=-]+` + attributes + `; SameSite=Lax$`,
		"https://portal.test": `^__Host-flash=[\w=-]+` + attributes + `; Secure; SameSite=Lax$`,
	} {
		c := sqliteSite(t, base).customer(t)
		longest := strings.Repeat("𝔸", 100) // the longest name, in the widest characters
		set := c.post("/agents", url.Values{"name": {longest}}).header.Get("Set-Cookie")
		if !regexp.MustCompile(want).MatchString(set) || len(set) > 4096 {
			t.Errorf("under %s the cookie is %q", base, set)
		}
		c.get("/agents").one("status", "Agent “"+longest+"” was created.")
	}
}
