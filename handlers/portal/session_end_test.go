package portal_test

import (
	"net/http"
	"strings"
	"testing"

	"portal/models/modelstest"
)

const toSignIn = "/login?next=%2Fapi-keys"

func TestDisabledUserIsSignedOutAndRefused(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			v := as.of(t, c.visitor)
			modelstest.Exec(t, s.databaseURL, "UPDATE users SET disabled_at = CURRENT_TIMESTAMP")
			v.get("/api-keys").redirects(toSignIn)
			refused := v.signIn(c.email, password).is(http.StatusUnprocessableEntity)
			refused.one("alert", "This account is disabled. Contact the operator.")
			v.signIn(c.email, "wrong").is(http.StatusUnprocessableEntity).one("alert", "Incorrect")
			modelstest.Exec(t, s.databaseURL, "UPDATE users SET disabled_at = NULL")
		})
	})
}

func TestVisitorsGetNoCookie(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		v := s.visitor(t)
		answers := []answer{
			v.get("/login"), v.get("/api-keys"), v.get("/nothing"), v.get("/openapi.json"), v.get("/api/agents"),
			v.post("/logout", nil), v.signIn(c.email, "wrong"),
		}
		for i, a := range answers {
			// Sign-out deletes the cookie.
			if set := a.header.Get("Set-Cookie"); set != "" && !strings.Contains(set, "Max-Age=0") {
				t.Errorf("response %d sets %q", i, set)
			}
		}
		if v.sessionCookie() != "" {
			t.Error("a visitor has a session")
		}
	})
}

func TestSignOutDeletesTheCookie(t *testing.T) {
	for _, base := range []string{"http://portal.test", "https://portal.test"} {
		s := sqliteSite(t, base)
		c := s.customer(t)
		if c.sessionCookie() == "" {
			t.Fatalf("%s: no cookie", base)
		}
		set := c.post("/logout", nil).header.Get("Set-Cookie")
		if c.sessionCookie() != "" {
			t.Errorf("%s: it is still there after %q", base, set)
		}
		if strings.HasPrefix(base, "https:") && !strings.Contains(set, "; Secure") {
			t.Errorf("browsers ignore a __Host- cookie that is not Secure: %q", set)
		}
	}
}
