package portal_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"portal/handlers"
	"portal/models"
	"portal/models/modelstest"
)

func TestSigningInOpensThePortal(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		page := c.get("/api-keys").is(http.StatusOK)
		navigation := page.one("navigation", "Main")
		for _, name := range []string{"API Keys", "Agents", "Activity"} {
			current := navigation.one("link", name).attr("aria-current")
			if (current == "page") != (name == "API Keys") {
				t.Errorf("aria-current of %s is %q", name, current)
			}
		}
		page.one("button", "Sign out")
		c.get("/").redirects("/api-keys")
		c.get("/login").redirects("/api-keys")
	})
}

func TestAFailedSignInDoesNotSayWhichWasWrong(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		known := s.customer(t).email
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, s.visitor(t))
			var said []string
			for _, email := range []string{known, "nobody@example.com"} {
				refused := v.signIn(email, "wrong").is(http.StatusUnprocessableEntity)
				said = append(said, refused.one("alert", "Incorrect").text())
				refused.one("textbox", "Email").with("value", email)
				if refused.one("textbox", "Password").has("value") {
					t.Error("the response contains the password")
				}
			}
			if said[0] != said[1] {
				t.Errorf("a wrong password says %q, an unknown email %q", said[0], said[1])
			}
			if v.sessionCookie() != "" {
				t.Error("a failed sign-in has started a session")
			}
		})
	})
}

// Here one guess reaches the limit.
func TestFormSaysHowLongToWaitAfterTooManyGuesses(t *testing.T) {
	t.Parallel()
	clock := modelstest.NewClock(time.Now())
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{Now: clock.Now, Mail: true, SignInLimit: 1})
	bothVoices(t, func(t *testing.T, as voice) {
		c, careful, stranger := s.customer(t), s.customer(t), s.visitor(t)
		careful.twoSteps(clock)
		stranger.signIn(careful.email, password)
		for _, form := range []struct {
			*visitor
			path          string
			guess         url.Values
			alert, button string
		}{
			{stranger, "/login/verification", codes("abcdef"), "Too many incorrect codes", "Verify"},
			{stranger, "/login", url.Values{"email": {c.email}, "password": {"wrong"}}, "Too many incorrect passwords", "Sign in"},
			{stranger, "/password-resets", url.Values{"email": {c.email}}, "Too many requests", "Send link"},
			{stranger, "/invitations/guess", url.Values{"password": {password}}, "Too many attempts from your network", ""},
			{c.visitor, "/account/password", passwords("wrong", newPassword), "Too many incorrect passwords", "Change password"},
			{c.visitor, "/account/email", emails("wrong", "new@example.com"), "Too many incorrect passwords", "Send confirmation link"},
			{c.visitor, "/account/authenticator", url.Values{"current_password": {"wrong"}}, "Too many incorrect passwords", "Continue"},
		} {
			v := as.of(t, form.visitor)
			if guessed := v.post(form.path, form.guess); guessed.status == http.StatusTooManyRequests {
				t.Errorf("%s: the first guess is refused", form.path)
			}
			limited := v.post(form.path, form.guess).is(http.StatusTooManyRequests)
			limited.one("alert", form.alert+". Wait "+limited.header.Get("Retry-After")+" seconds")
			if form.button != "" {
				limited.one("button", form.button)
			}
			// Ends the limits, and makes the sign-in old.
			clock.Advance(10 * time.Minute)
		}
	})
}

func TestAVisitorIsSentToSignInAndBack(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("key")
		row := "/api-keys/" + key.ID.String()
		for _, test := range []struct{ method, path, next string }{
			{http.MethodGet, "/", "/"},
			{http.MethodGet, "/api-keys", "/api-keys"},
			{http.MethodGet, "/activity?before=" + key.ID.String(), "/activity?before=" + key.ID.String()},
			{http.MethodGet, row + "/revocation", row + "/revocation"},
			{http.MethodPost, "/api-keys", "/api-keys"},
			{http.MethodPost, row + "/revocation", "/api-keys"},
			{http.MethodPost, "/agents", "/agents"},
			{http.MethodPost, "/agents/" + uuid.NewString() + "/removal", "/agents"},
		} {
			t.Run(test.method+" "+test.path, func(t *testing.T) {
				bothVoices(t, func(t *testing.T, as voice) {
					v := as.of(t, s.visitor(t))
					toSignIn := "/login?" + url.Values{"next": {test.next}}.Encode()
					v.send(test.method, test.path, "").redirects(toSignIn)
					page := voice{}.of(t, v).get(toSignIn)
					want := as.htmx || test.method == http.MethodPost
					if got := containsText(page, sessionEnded); got != want {
						t.Errorf("the page says that the session has ended: %t, want %t", got, want)
					}
					signedIn := v.post("/login", url.Values{
						"email": {c.email}, "password": {password}, "next": {page.hidden("next")},
					})
					signedIn.redirects(test.next)
				})
			})
		}
		if keys := c.get("/api-keys").all("button", "Revoke"); len(keys) != 1 {
			t.Error("a form without a session has revoked the key")
		}
	})
}

const sessionEnded = "Your session has ended. Your changes were not saved."

func TestEndOfSessionIsShownOnce(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.post("/logout", nil).redirects("/login")
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			v.post("/api-keys", generation("production", uuid.NewString())).redirects(toSignIn)
			page := c.get(toSignIn).is(http.StatusOK)
			page.one("status", sessionEnded)
			page.none("alert", sessionEnded)
			refused := v.post("/login", url.Values{"email": {c.email}, "password": {"wrong"}, "next": {page.hidden("next")}})
			refused.is(http.StatusUnprocessableEntity).one("alert", "Incorrect")
			if containsText(refused, sessionEnded) || refused.hidden("next") != "/api-keys" {
				t.Errorf("the end of the session is shown again, or the form leads to %q", refused.hidden("next"))
			}
		})
		c.signIn(c.email, password).redirects("/api-keys")
		c.get("/api-keys").says("No API keys yet")
	})
}

func TestSignInRedirectsWithinThePortal(t *testing.T) {
	s := sqliteSite(t, httpBase)
	c := s.customer(t)
	id := uuid.NewString()
	for _, next := range []string{
		"", "https://example.com/", "//example.com/api-keys", `/\example.com`, `\/example.com`,
		"/\t/example.com",
		"javascript:alert(1)", "http:api-keys", "api-keys", "/%2F/example.com", "/api-keys/../../example.com", "/api-keys/",
		"/logout", "/login", "/login?next=/api-keys", "/static/app.css", "/api/agents", "/healthz", "/nothing",
		"/api-keys/" + id + "/revocation/again", "/api-keys/no-id/revocation",
		"http://portal.test/agents", "//portal.test/agents",
		"/api-keys\r\nSet-Cookie: a=b", "@example.com", "/api%2dkeys/%2e%2e",
	} {
		v := s.visitor(t)
		if got := v.get("/login?" + url.Values{"next": {next}}.Encode()).hidden("next"); got != "/api-keys" {
			t.Errorf("the form for next=%q leads to %q", next, got)
		}
		v.post("/login", url.Values{"email": {c.email}, "password": {password}, "next": {next}}).redirects("/api-keys")
		// The same for a visitor with a session, who is redirected.
		v.get("/login?" + url.Values{"next": {next}}.Encode()).redirects("/api-keys")
	}
}

func TestSignInCreatesANewToken(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		before := c.sessionCookie()
		thief := c.copied()

		c.signIn(c.email, password).redirects("/api-keys")
		if c.sessionCookie() == before {
			t.Error("signing in has kept the session that was there")
		}
		thief.get("/api-keys").redirects("/login?next=%2Fapi-keys")

		planted := s.visitor(t)
		planted.Jar.SetCookies(s.base, []*http.Cookie{{Name: "session", Value: "planted", Path: "/"}})
		planted.signIn(c.email, password).redirects("/api-keys")
		if planted.sessionCookie() == "planted" {
			t.Error("signing in has kept a cookie that was planted")
		}
	})
}

func TestSigningOutEndsTheSessionOnTheServer(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		c.visitor = v
		copied := c.copied()
		copied.get("/api-keys").is(http.StatusOK)

		c.post("/logout", nil).redirects("/login")
		if c.sessionCookie() != "" {
			t.Error("the browser still holds a cookie")
		}
		copied.get("/api-keys").redirects("/login?next=%2Fapi-keys")
		// Again, as from another tab.
		c.post("/logout", nil).redirects("/login")
	})
}

// Only the user's own requests count as a use. Pages also send requests by themselves.
func TestPollsDoNotKeepASessionAlive(t *testing.T) {
	clock := time.Now()
	options := models.Options{Now: func() time.Time { return clock }, SessionIdle: time.Hour}
	onSiteWith(t, options, func(t *testing.T, s *site) {
		clock = time.Now()
		c, user := s.customer(t), s.customer(t)
		key := c.key("production")
		polling := c.fragments()
		polls := []string{
			"/session", "/api-keys/changes", "/api-keys/" + key.ID.String() + "/first-use",
			"/api-keys/" + key.ID.String() + "/revocation/outcome", "/api-keys/" + key.ID.String() + "/rotation/progress",
		}
		for range 11 {
			clock = clock.Add(5 * time.Minute)
			for _, poll := range polls {
				if polling.get(poll).header.Get("HX-Redirect") == toSignIn {
					t.Fatalf("%s: the session has ended early", poll)
				}
			}
			user.get("/agents").is(http.StatusOK)
		}
		if got := polling.get("/session").is(http.StatusOK); containsText(got, "session has ended") {
			t.Error("the page says that the session has ended")
		}
		clock = clock.Add(5 * time.Minute)
		user.get("/api-keys").is(http.StatusOK)
		for range 2 {
			polling.get("/session").is(http.StatusOK).one("alert", "Your session has ended. Your input is still here.")
		}
		c.get("/api-keys").redirects(toSignIn)
		c.get("/session").redirects("/api-keys")
		c.signIn(c.email, password).redirects("/api-keys")
		if got := polling.get("/session").is(http.StatusOK).one("alert", "").text(); got != "" {
			t.Errorf("after the user has signed in again, the page says %q", got)
		}
	})
}

// In another tab, another user signs in. The page of the first one must not show or change anything
// of the other's account.
func TestAnOpenPageServesNoOtherUser(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, other := s.customer(t), s.customer(t)
		open := c.fragments()
		body, _ := c.get("/api-keys").is(http.StatusOK).find("class", "portal")
		var sent map[string]string
		modelstest.Must(t, json.Unmarshal([]byte(body.attr("hx-headers:inherited")), &sent))
		open.headers = []string{"Portal-User: " + sent["Portal-User"]}
		open.get("/api-keys/changes").is(http.StatusOK)
		c.signIn(other.email, password).redirects("/api-keys")
		open.get("/session").is(http.StatusOK).one("alert", "You’re now signed in as "+other.email)
		open.get("/api-keys/changes").is(http.StatusForbidden)
		open.post("/api-keys", generation("production", uuid.NewString())).is(http.StatusForbidden).says("You’re now signed in as " + other.email)
		if keys := other.keys(); len(keys) > 0 {
			t.Errorf("the other account has %d keys", len(keys))
		}
		c.signIn(c.email, password).redirects("/api-keys")
		if got := open.get("/session").is(http.StatusOK).one("alert", "").text(); got != "" {
			t.Errorf("after the user has signed in again, the page says %q", got)
		}
		open.post("/api-keys", generation("production", uuid.NewString())).is(http.StatusOK)
	})
}

const toSignIn = "/login?next=%2Fapi-keys"

func TestDisabledUserIsSignedOutAndRefused(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		modelstest.Exec(t, c.databaseURL, "UPDATE users SET disabled_at = CURRENT_TIMESTAMP")
		v.get("/api-keys").redirects(toSignIn)
		refused := v.signIn(c.email, password).is(http.StatusUnprocessableEntity)
		refused.one("alert", "This account is disabled. Contact the operator.")
		v.signIn(c.email, "wrong").is(http.StatusUnprocessableEntity).one("alert", "Incorrect")
		modelstest.Exec(t, c.databaseURL, "UPDATE users SET disabled_at = NULL")
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

func TestSessionIsLookedUpOnceForARequest(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer("test")
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{Tracer: tracer}).with(t, func(d *handlers.Deps) { d.Tracer = tracer })
	c := s.customer(t)
	for _, send := range []func() answer{
		func() answer { return c.get("/api-keys") },
		func() answer { return c.fragments().get("/api-keys/changes") },
		func() answer { return c.get("/login") },
		func() answer { return c.get("/nothing") },
		func() answer { return c.get("/agents/no-id") },
		func() answer { return c.post("/agents", url.Values{"name": {"Front desk"}}) },
		func() answer { return c.post("/agents", url.Values{"name": {""}}) },
		func() answer { return c.signIn(c.email, password) },
		func() answer { return c.post("/logout", nil) },
	} {
		before, lookups := len(spans.Ended()), 0
		answer := send()
		for _, span := range spans.Ended()[before:] {
			if span.Name() == "SELECT sessions" {
				lookups++
			}
		}
		if lookups != 1 {
			t.Errorf("%d look-ups for the response:\n%s", lookups, answer.text())
		}
	}
}

// A browser that keeps no cookie opens the address after the sign-in as a visitor.
func TestSignInSaysThatTheBrowserKeepsNoCookie(t *testing.T) {
	t.Parallel()
	clock := modelstest.NewClock(time.Now())
	s := newSite(t, modelstest.SQLiteURL(t), "https://portal.test:8443", models.Options{Now: clock.Now})
	lost := func(location string) answer {
		t.Helper()
		toLogin := s.visitor(t).get(location).is(http.StatusSeeOther).header.Get("Location")
		page := s.visitor(t).get(toLogin).is(http.StatusOK)
		page.one("alert", "Your browser did not keep the cookie. Open https://portal.test:8443 and allow cookies.")
		return page
	}
	where := func(a answer) string { return a.is(http.StatusSeeOther).header.Get("Location") }
	c, browser := s.customer(t), s.visitor(t)
	form := url.Values{"email": {c.email}, "password": {password}, "next": {"/activity?q=a"}}
	first := where(browser.post("/login", form))
	if next := lost(first).hidden("next"); next != "/activity?q=a" {
		t.Errorf("the form leads to %q", next)
	}
	// Otherwise the mark is gone before the page is shown, so nobody keeps it.
	if to := where(browser.get(first)); to != "/activity?q=a" {
		t.Errorf("%q leads to %q", first, to)
	}
	if again := where(browser.post("/login", form)); again != "/activity?q=a" {
		t.Errorf("the known browser is sent to %q", again)
	}
	s.visitor(t).get(where(s.visitor(t).get("/agents"))).is(http.StatusOK).none("alert", "cookie")

	secret, _ := c.twoSteps(clock)
	browser = s.visitor(t)
	pending := where(browser.post("/login", form))
	lost(pending)
	plain := where(browser.get(pending))
	if plain != "/login/verification?next=%2Factivity%3Fq%3Da" {
		t.Errorf("%q leads to %q", pending, plain)
	}
	browser.get(plain).is(http.StatusOK)
	lost(where(browser.post("/login/verification", codes(codeOf(t, secret, clock.Now())))))
}
