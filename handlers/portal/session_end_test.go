package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
)

const toSignIn = "/login?next=%2Fapi-keys"

func TestDisablingAUserEndsTheSessionAtOnce(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			for _, table := range []string{"users", "accounts"} {
				c := s.customer(t)
				v := as.of(t, c.visitor)
				v.get("/api-keys").is(http.StatusOK)
				modelstest.Exec(t, s.databaseURL, "UPDATE "+table+" SET disabled_at = CURRENT_TIMESTAMP")
				v.get("/api-keys").redirects(toSignIn)
				v.post("/agents", url.Values{"name": {"by the disabled"}}).redirects("/login?next=%2Fagents")
				refused := v.signIn(c.email, password).is(http.StatusUnprocessableEntity)
				refused.one("alert", "This account is disabled. Contact the operator.")
				v.signIn(c.email, "wrong").is(http.StatusUnprocessableEntity).one("alert", "Incorrect")
				modelstest.Exec(t, s.databaseURL, "UPDATE "+table+" SET disabled_at = NULL")
				if agents, err := s.store.Agents.List(t.Context(), c.account.ID, models.Page{Limit: 10}); err != nil || len(agents.Items) != 0 {
					t.Errorf("%s: agents %v, %v", table, agents, err)
				}
			}
		})
	})
}

func TestAResetPasswordEndsTheSession(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		if err := s.store.Credentials.ResetPassword(t.Context(), c.email, "four words of another kind"); err != nil {
			t.Fatal(err)
		}
		c.get("/api-keys").redirects(toSignIn)
		c.signIn(c.email, password).is(http.StatusUnprocessableEntity)
		c.signIn(c.email, "four words of another kind").redirects("/api-keys")
	})
}

// A change of the password keeps the session, but replaces its token.
func TestPasswordChangeInvalidatesACopiedCookie(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			thief := c.copied()
			thief.get("/api-keys").is(http.StatusOK)
			as.of(t, c.visitor).post("/account/password", url.Values{
				"current_password": {password}, "new_password": {"four words of another kind"},
			})
			thief.get("/api-keys").redirects(toSignIn)
			c.get("/api-keys").is(http.StatusOK)
		})
	})
}

func TestSessionHasAnAbsoluteLimit(t *testing.T) {
	clock := time.Now()
	options := models.Options{Now: func() time.Time { return clock }, SessionIdle: time.Hour, SessionMax: 2 * time.Hour}
	onSiteWith(t, options, func(t *testing.T, s *site) {
		clock = time.Now()
		c := s.customer(t)
		for range 3 {
			clock = clock.Add(30 * time.Minute)
			c.get("/api-keys").is(http.StatusOK)
		}
		clock = clock.Add(30 * time.Minute)
		c.get("/api-keys").redirects(toSignIn)
	})
}

func TestSignInEndsThePreviousSessionOfTheBrowser(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		first, second := s.customer(t), s.customer(t)
		copied := first.copied()
		first.signIn(second.email, password).redirects("/api-keys")
		first.get("/api-keys").is(http.StatusOK).says(second.email)
		copied.get("/api-keys").redirects(toSignIn)
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

// The previous secret still verifies, but it no longer signs.
func TestCookieSurvivesOneRotationOfTheSecret(t *testing.T) {
	plain := sqliteSite(t, httpBase)
	oldSecret, newSecret := strings.Repeat("old secret", 4), strings.Repeat("new secret", 4)
	before := plain.with(t, httpBase, oldSecret, "", nil)
	during := plain.with(t, httpBase, newSecret, oldSecret, nil)
	after := plain.with(t, httpBase, newSecret, "", nil)
	c := before.customer(t)
	c.copiedTo(during).get("/api-keys").is(http.StatusOK)
	c.copiedTo(after).get("/api-keys").redirects(toSignIn)
	fresh := during.visitor(t)
	fresh.signIn(c.email, password).redirects("/api-keys")
	fresh.copiedTo(after).get("/api-keys").is(http.StatusOK)
}
