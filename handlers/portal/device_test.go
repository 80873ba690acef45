package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
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
		cookie, err := http.ParseSetCookie(line)
		if err != nil {
			a.t.Fatal(err)
		}
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
		forger.client.Jar.SetCookies(s.base, []*http.Cookie{{Name: "device", Value: "forged", Path: "/"}})
		forger.signIn(c.email, password).is(http.StatusTooManyRequests)
		c.signIn(c.email, password).redirects("/api-keys")
	})
}

func TestDeviceFollowsAChangeOfEmail(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		email := "new-" + c.email
		changed := c.post("/account/email", url.Values{"email": {email}, "current_password": {password}})
		changed.redirects("/account")
		c.post("/logout", nil)
		for range 10 {
			s.visitor(t).signIn(email, "wrong").is(http.StatusUnprocessableEntity)
		}
		s.visitor(t).signIn(email, password).is(http.StatusTooManyRequests)
		c.signIn(email, password).redirects("/api-keys")
	})
}

func TestDeviceSurvivesOneRotationOfTheSecret(t *testing.T) {
	plain := sqliteSite(t, httpBase)
	oldSecret, newSecret := strings.Repeat("old secret", 4), strings.Repeat("new secret", 4)
	c := plain.with(t, httpBase, oldSecret, "", nil).customer(t)
	during := plain.with(t, httpBase, newSecret, oldSecret, nil)
	after := plain.with(t, httpBase, newSecret, "", nil)
	for range 10 {
		plain.visitor(t).signIn(c.email, "wrong")
	}
	c.copiedTo(after).signIn(c.email, password).is(http.StatusTooManyRequests)
	c.copiedTo(during).signIn(c.email, password).redirects("/api-keys")
}

func TestWrongCurrentPasswordIsRecordedForTheUser(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		for range 2 {
			c.post("/account/password", passwords("wrong", "a much longer battery staple")).is(http.StatusUnprocessableEntity)
		}
		const deed = "entered an incorrect current password 2 times"
		for deadline := time.Now().Add(time.Minute); !containsText(c.get("/activity"), deed); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("it is not recorded")
			}
		}
		page := c.get("/activity?" + url.Values{"kind": {"password.refused"}}.Encode())
		page.says(c.email + " " + deed)
		if containsText(page, "Visitor") {
			t.Error("the wrong password is recorded as a visitor's")
		}
	})
}
