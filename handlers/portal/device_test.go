package portal_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
)

func TestDeviceNames(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		for userAgent, want := range map[string]string{
			firefox: "Firefox on Linux",
			iPhone:  "Safari on iPhone",
			"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36":               "Chrome on Windows",
			"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0": "Edge on Windows",
			"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15":         "Safari on Mac",
			"Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36":                  "Chrome on Android",
			"Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0 Mobile/15E148 Safari/604.1": "Chrome on iPad",
			"curl/8.5.0":                      "curl",
			"Mozilla/5.0 (X11; Linux x86_64)": "Browser on Linux",
			"<script>alert(1)</script>":       "Unknown device",
		} {
			here := c.elsewhere(userAgent)
			here.t = t
			sessionItems(here.get("/account"))[0].says(want + " This session")
			here.post("/logout", nil)
		}
	})
}

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

func TestDeviceCookieAttributes(t *testing.T) {
	for base, name := range map[string]string{
		httpBase: "device", "https://portal.test": "__Host-device",
	} {
		s := sqliteSite(t, base)
		cookie := s.visitor(t).signIn(s.customer(t).email, password).cookie(name)
		if cookie.Secure != strings.HasPrefix(base, "https:") || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode ||
			cookie.Path != "/" || cookie.MaxAge != int(365*24*time.Hour/time.Second) {
			t.Errorf("the cookie is %+v", cookie)
		}
	}
}

func TestDeviceSignsInWhileStrangersGuess(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, other := s.customer(t), s.customer(t)
		c.post("/logout", nil).redirects("/login")
		stranger := s.visitor(t)
		for range 10 {
			stranger.signIn(c.email, "wrong").is(http.StatusUnprocessableEntity)
		}
		stranger.signIn(c.email, password).is(http.StatusTooManyRequests)
		other.signIn(c.email, password).is(http.StatusTooManyRequests)
		forger := s.visitor(t)
		forger.Jar.SetCookies(s.base, []*http.Cookie{{Name: "device", Value: "forged", Path: "/"}})
		forger.signIn(c.email, password).is(http.StatusTooManyRequests)
		c.signIn(c.email, password).redirects("/api-keys")
	})
}

// Each browser that the user knows has ten wrong passwords a minute, and all together have twenty.
func TestKnownBrowsersShareALimit(t *testing.T) {
	clock := modelstest.NewClock(time.Now())
	onSiteWith(t, models.Options{Now: clock.Now}, func(t *testing.T, s *site) {
		c := s.customer(t)
		known := make([]*visitor, 6)
		for i := range known {
			known[i] = s.visitor(t)
			known[i].signIn(c.email, password).redirects("/api-keys")
			known[i].post("/logout", nil)
		}
		checked := 0
		for range 10 {
			for _, v := range known {
				if v.signIn(c.email, "wrong").status == http.StatusUnprocessableEntity {
					checked++
				}
			}
		}
		if checked != 20 {
			t.Errorf("%d wrong passwords were checked, want 20", checked)
		}
		known[0].signIn(c.email, password).is(http.StatusTooManyRequests)
	})
}

func TestKnownBrowsersEndWithAChange(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		clock := modelstest.NewClock(time.Now())
		s := newSite(t, databaseURL, httpBase, models.Options{Now: clock.Now, Mail: true})
		for name, change := range map[string]func(c *customer){
			"change of password": func(c *customer) {
				c.post("/account/password", passwords(password, newPassword)).redirects("/account")
			},
			"reset": func(c *customer) {
				modelstest.Must(t, s.store.Credentials.ResetPassword(t.Context(), c.email, newPassword))
			},
			"change of email": func(c *customer) {
				*c = c.changeEmail("new-" + c.email)
			},
		} {
			clock.Advance(time.Minute) // ends the limit of the address
			c := s.customer(t)
			change(&c)
			c.post("/logout", nil)
			for range 10 {
				s.visitor(t).signIn(c.email, "wrong").is(http.StatusUnprocessableEntity)
			}
			for _, password := range []string{password, newPassword} {
				if status := c.signIn(c.email, password).status; status != http.StatusTooManyRequests {
					t.Errorf("%s: the browser is still known: %d", name, status)
				}
			}
		}
	})
}

// The previous secret still verifies cookies, but it no longer signs them.
func TestCookiesSurviveOneRotationOfTheSecret(t *testing.T) {
	plain := sqliteSite(t, httpBase)
	oldSecret, newSecret := strings.Repeat("old secret", 4), strings.Repeat("new secret", 4)
	c := plain.with(t, httpBase, oldSecret, "", nil).customer(t)
	during := plain.with(t, httpBase, newSecret, oldSecret, nil)
	after := plain.with(t, httpBase, newSecret, "", nil)
	c.copiedTo(during).get("/api-keys").is(http.StatusOK)
	c.copiedTo(after).get("/api-keys").redirects(toSignIn)
	fresh := during.visitor(t)
	fresh.signIn(c.email, password).redirects("/api-keys")
	fresh.copiedTo(after).get("/api-keys").is(http.StatusOK)
	// A known device is not held up by the guesses of strangers.
	for range 10 {
		plain.visitor(t).signIn(c.email, "wrong")
	}
	c.copiedTo(after).signIn(c.email, password).is(http.StatusTooManyRequests)
	c.copiedTo(during).signIn(c.email, password).redirects("/api-keys")
}

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
