package portal_test

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portal/handlers"
	"portal/models"
	"portal/models/modelstest"
)

const toSignIn = "/login?next=%2Fapi-keys"

func TestADisabledUserIsOutAtOnce(t *testing.T) {
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		s := newSite(t, databaseURL, "http://portal.test", models.Options{})
		bothVoices(t, func(t *testing.T, as voice) {
			for _, table := range []string{"users", "accounts"} {
				c := s.customer(t)
				v := as.of(t, c.visitor)
				v.get("/api-keys").is(http.StatusOK)
				modelstest.Exec(t, databaseURL, "UPDATE "+table+" SET disabled_at = CURRENT_TIMESTAMP")
				v.get("/api-keys").redirects(toSignIn)
				v.post("/agents", url.Values{"name": {"by the disabled"}}).redirects("/login?next=%2Fagents")
				v.signIn(c.email, password).is(http.StatusUnprocessableEntity)
				modelstest.Exec(t, databaseURL, "UPDATE "+table+" SET disabled_at = NULL")
				if agents, err := s.store.Agents(t.Context(), c.account.ID); err != nil || len(agents) != 0 {
					t.Errorf("%s: agents %v, %v", table, agents, err)
				}
			}
		})
	})
}

func TestAResetPasswordEndsTheSession(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		if err := s.store.ResetPassword(t.Context(), c.email, "four words of another kind"); err != nil {
			t.Fatal(err)
		}
		c.get("/api-keys").redirects(toSignIn)
		c.signIn(c.email, password).is(http.StatusUnprocessableEntity)
		c.signIn(c.email, "four words of another kind").redirects("/api-keys")
	})
}

// Who has copied the cookie is out when the password changes, although the
// session goes on.
func TestAChangedPasswordTakesTheCookieOfWhoeverCopiedIt(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			thief := s.visitor(t)
			thief.client.Jar.SetCookies(s.base, c.client.Jar.Cookies(s.base))
			thief.get("/api-keys").is(http.StatusOK)
			as.of(t, c.visitor).post("/account/password", url.Values{
				"current_password": {password}, "new_password": {"four words of another kind"},
			})
			thief.get("/api-keys").redirects(toSignIn)
			c.get("/api-keys").is(http.StatusOK)
		})
	})
}

func TestASessionEndsHoweverMuchItIsUsed(t *testing.T) {
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		clock := time.Now()
		s := newSite(t, databaseURL, "http://portal.test", models.Options{
			Now: func() time.Time { return clock }, SessionIdle: time.Hour, SessionMax: 2 * time.Hour,
		})
		c := s.customer(t)
		for range 3 {
			clock = clock.Add(30 * time.Minute)
			c.get("/api-keys").is(http.StatusOK)
		}
		clock = clock.Add(30 * time.Minute)
		c.get("/api-keys").redirects(toSignIn)
	})
}

// On a browser that two people share, the first one's stay ends with the second
// one's sign-in.
func TestSigningInEndsTheStayOfWhoeverWasThere(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		first, second := s.customer(t), s.customer(t)
		copied := s.visitor(t)
		copied.client.Jar.SetCookies(s.base, first.client.Jar.Cookies(s.base))
		first.signIn(second.email, password).redirects("/api-keys")
		first.get("/api-keys").is(http.StatusOK).says(second.email)
		copied.get("/api-keys").redirects(toSignIn)
	})
}

func TestNobodyHasACookieBeforeSigningIn(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		v := s.visitor(t)
		answers := []answer{
			v.get("/login"), v.get("/api-keys"), v.get("/nothing"), v.get("/openapi.json"), v.get("/api/agents"),
			v.post("/logout", nil), v.signIn(c.email, "wrong"),
		}
		for i, a := range answers {
			// That of signing out is empty, and ended already.
			if set := a.header.Get("Set-Cookie"); set != "" && !strings.Contains(set, "Max-Age=0") {
				t.Errorf("answer %d sets %q", i, set)
			}
		}
		if v.sessionCookie() != "" {
			t.Error("a visitor has a session")
		}
	})
}

func TestSigningOutTakesTheCookieThatSigningInSet(t *testing.T) {
	for _, base := range []string{"http://portal.test", "https://portal.test"} {
		s := newSite(t, modelstest.SQLiteURL(t), base, models.Options{})
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

// During a rotation the old secret still opens, and signs no more.
func TestACookieOutlivesTheRotationOfTheSecretOnce(t *testing.T) {
	store := modelstest.Open(t, modelstest.SQLiteURL(t), models.Options{})
	oldSecret, newSecret := strings.Repeat("old secret", 4), strings.Repeat("new secret", 4)
	before, during, after := siteOf(t, store, oldSecret, ""), siteOf(t, store, newSecret, oldSecret), siteOf(t, store, newSecret, "")
	c := before.customer(t)
	at := func(s *site) *visitor {
		v := s.visitor(t)
		v.client.Jar.SetCookies(s.base, c.client.Jar.Cookies(s.base))
		return v
	}
	at(during).get("/api-keys").is(http.StatusOK)
	at(after).get("/api-keys").redirects(toSignIn)
	fresh := during.visitor(t)
	fresh.signIn(c.email, password).redirects("/api-keys")
	later := after.visitor(t)
	later.client.Jar.SetCookies(after.base, fresh.client.Jar.Cookies(during.base))
	later.get("/api-keys").is(http.StatusOK)
}

// siteOf is a portal over the store with these secrets.
func siteOf(t testing.TB, store *models.Store, secret, previous string) *site {
	t.Helper()
	keyring, err := models.NewKeyring(secret, previous)
	if err != nil {
		t.Fatal(err)
	}
	base := &url.URL{Scheme: "http", Host: "portal.test"}
	handler, err := handlers.New(handlers.Deps{
		Store: store, Tokens: models.NewWidgetTokens(keyring, base.String(), time.Minute, nil),
		CookieKeys: keyring.CookieKeys(), SessionMax: time.Hour, BaseURL: base,
		Logger: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &site{store, handler, base}
}
