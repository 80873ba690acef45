package portal_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"portal/handlers"
	"portal/handlers/handlerstest"
	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// withProvider returns a portal over the same store at which users can sign in with the provider.
func (s *site) withProvider(t testing.TB, provider *handlerstest.Provider) *site {
	t.Helper()
	return s.with(t, func(d *handlers.Deps) { d.Provider = &provider.Config })
}

// sharedProvider returns the provider of all tests that do not stop it.
func sharedProvider(t *testing.T) *handlerstest.Provider {
	t.Helper()
	startProvider.Do(func() { provider.Start(t) })
	return provider
}

var (
	provider      = handlerstest.NewProvider(httpBase)
	startProvider sync.Once
)

// onProviderSite runs a test against a portal with a provider.
func onProviderSite(t *testing.T, options models.Options, run func(t *testing.T, s *site)) {
	t.Helper()
	t.Parallel()
	run(t, newSite(t, modelstest.SQLiteURL(t), httpBase, options).withProvider(t, sharedProvider(t)))
}

// toProvider starts a sign-in and returns the address at the provider.
func (v *visitor) toProvider(next string) string {
	v.t.Helper()
	return v.get("/login/oidc?" + url.Values{"next": {next}}.Encode()).is(http.StatusSeeOther).header.Get("Location")
}

// signInAs signs in with the provider under this name.
func (v *visitor) signInAs(name string) answer {
	v.t.Helper()
	return v.get(handlerstest.NewPerson(v.t).SignIn(v.toProvider("/agents"), name))
}

// connect starts to connect the provider and returns the address at the provider.
func (v *visitor) connect() string {
	v.t.Helper()
	page := v.post("/account/identity", nil).is(http.StatusOK)
	address := page.one("link", "Continue to Acme ID").attr("href")
	if refresh := page.header.Get("Refresh"); refresh != "0; url="+address {
		v.t.Errorf("Refresh is %q", refresh)
	}
	return address
}

// connectAs connects the provider's identity with this name to the signed-in user.
func (v *visitor) connectAs(name string) answer {
	v.t.Helper()
	return v.get(handlerstest.NewPerson(v.t).SignIn(v.connect(), name))
}

func TestProviderIsConnectedAndSignsIn(t *testing.T) {
	onProviderSite(t, models.Options{}, func(t *testing.T, s *site) {
		c := s.customer(t)
		name := "ada-at-" + c.email
		c.get("/account").one("button", "Connect Acme ID")
		c.connectAs(name).redirects("/account")
		page := c.get("/account").is(http.StatusOK)
		page.one("status", "Acme ID connected")
		page.one("button", "Disconnect Acme ID")
		page.says("Connected to " + name)
		c.connectAs(name).redirects("/account") // again

		// Another user of this browser; the sign-in replaces their session.
		other := s.customer(t)
		other.signInAs(name).redirects("/agents")
		other.get("/account").says(c.email)
		activity := other.get("/activity")
		activity.says(c.email + " signed in with Acme ID")
		activity.says(c.email + " connected Acme ID for signing in")
		if strings.Count(activity.text(), "connected Acme ID for") != 1 {
			t.Error("the second connection changed something")
		}

		// Disconnecting ends the other session, and the identity signs in no more.
		for _, as := range []voice{{}, {htmx: true}} {
			removed := as.of(t, c.visitor).post("/account/identity/removal", nil)
			if as.htmx {
				removed.is(http.StatusOK).one("button", "Connect Acme ID")
			} else {
				removed.redirects("/account")
			}
		}
		other.get("/account").is(http.StatusSeeOther)
		s.visitor(t).signInAs(name).is(http.StatusForbidden)
		c.get("/activity").says("disconnected Acme ID")
	})
}

func TestIdentityIsConnectedAndSignsInWithoutUserInfo(t *testing.T) {
	onProviderSite(t, models.Options{}, func(t *testing.T, s *site) {
		c := s.customer(t)
		name := "broken-at-" + c.email
		s.visitor(t).signInAs(name).is(http.StatusForbidden).one("alert", "isn’t linked to a user here")
		c.connectAs(name).redirects("/account")
		c.get("/account").one("button", "Disconnect Acme ID")
		s.visitor(t).signInAs(name).redirects("/agents")
	})
}

func TestUnknownIdentityShowsWhatToDo(t *testing.T) {
	onProviderSite(t, models.Options{}, func(t *testing.T, s *site) {
		c, v := s.customer(t), s.visitor(t)
		v.get("/login?next=%2Fagents").one("link", "Sign in with Acme ID").with("href", "/login/oidc?next=%2Fagents")
		// The email alone is not trusted.
		page := v.signInAs(c.email).is(http.StatusForbidden)
		page.one("heading", "Sign in with Acme ID")
		page.one("alert", "isn’t linked to a user here")
		page.says("At Acme ID you are " + c.email)
		page.one("link", "Sign in another way")
		if v.sessionCookie() != "" {
			t.Error("there is a session")
		}
		again := v.get(page.one("link", "Use another Acme ID identity").attr("href")).header.Get("Location")
		if !strings.Contains(again, "prompt=login") {
			t.Errorf("%s does not make the provider ask again", again)
		}
	})
}

func TestVerifiedEmailSignsInIfTrusted(t *testing.T) {
	onProviderSite(t, models.Options{Mail: true}, func(t *testing.T, s *site) {
		s = s.with(t, func(d *handlers.Deps) {
			config := sharedProvider(t).Config
			config.TrustEmail, d.Provider = true, &config
		})
		c, v := s.customer(t), s.visitor(t)
		former := c.email
		v.signInAs(former).redirects("/agents")
		v.get("/activity").says("connected Acme ID for signing in")
		// The session before has ended.
		c.get("/account").redirects("/login?next=%2Faccount")
		c.visitor = v

		// The identity stays connected when the email changes.
		c = c.changeEmail("new-" + former)
		s.visitor(t).signInAs(former).redirects("/agents")
		// The new email does not bring a second identity.
		s.visitor(t).signInAs(c.email).is(http.StatusConflict).one("alert", "already has another one")

		unverified := s.customer(t)
		unverified = unverified.changeEmail("unverified-" + former)
		s.visitor(t).signInAs(unverified.email).is(http.StatusForbidden)
	})
}

func TestDisabledUserCannotSignInWithTheProvider(t *testing.T) {
	onProviderSite(t, models.Options{}, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.connectAs(c.email).redirects("/account")
		second := modelstest.Value(s.store.People.Add(t.Context(), c.account.ID, people.NewUser{Email: "second-" + c.email, Role: people.RoleOwner}, record.Operator()))(t)
		modelstest.Must(t, s.store.Credentials.ResetPassword(t.Context(), second.Email, "correct horse battery staple"))
		modelstest.Must(t, s.store.People.SetDisabled(context.Background(), c.email, true))
		s.visitor(t).signInAs(c.email).is(http.StatusUnprocessableEntity).one("alert", "disabled")
		modelstest.Must(t, s.store.People.SetDisabled(context.Background(), c.email, false))
		s.visitor(t).signInAs(c.email).redirects("/agents")
		modelstest.Must(t, s.store.Accounts.SetDisabled(context.Background(), c.account.ID, true, record.Operator()))
		s.visitor(t).signInAs(c.email).is(http.StatusUnprocessableEntity)
	})
}

func TestProviderSignInIsCompletedInItsOwnBrowserOnly(t *testing.T) {
	onProviderSite(t, models.Options{}, func(t *testing.T, s *site) {
		attacker, victim := s.customer(t), s.customer(t)
		attacker.connectAs(attacker.email).redirects("/account")
		attacker.post("/logout", nil).redirects("/login")

		// The attacker stops before the callback and gives its address to the victim.
		callback := handlerstest.NewPerson(t).SignIn(attacker.toProvider("/"), attacker.email)
		stranger := s.visitor(t)
		refused := stranger.get(callback).is(http.StatusBadRequest)
		refused.one("alert", "started in another browser")
		refused.headed("Referrer-Policy", "strict-origin")
		stranger.toProvider("/") // an attempt of the stranger's own does not match either
		stranger.get(callback).is(http.StatusBadRequest)
		victim.get(callback).redirects("/api-keys")
		victim.get("/account").is(http.StatusOK).says(victim.email)

		// The attacker cannot connect an identity to the victim, or complete a sign-in
		// twice.
		connecting := handlerstest.NewPerson(t).SignIn(victim.connect(), "eve-"+victim.email)
		mixed := s.visitor(t)
		for _, cookie := range victim.Jar.Cookies(s.base) {
			if cookie.Name == "oidc" {
				mixed.Jar.SetCookies(s.base, []*http.Cookie{cookie})
			}
		}
		mixed.get(connecting).is(http.StatusBadRequest)
		attacker.copied().get(callback).redirects("/")
		attacker.get(callback).is(http.StatusBadRequest)
		forger := s.visitor(t)
		forger.Jar.SetCookies(s.base, []*http.Cookie{{Name: "oidc", Value: "forged", Path: "/"}})
		forger.get(callback).is(http.StatusBadRequest)
	})
}

// A browser has a request for each tab. Each completes once, within ten minutes, and only the
// newest are kept.
func TestTabsSignInAtTheProviderSideBySide(t *testing.T) {
	clock := modelstest.NewClock(time.Now())
	onProviderSite(t, models.Options{Now: clock.Now}, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.connectAs(c.email).redirects("/account")
		person, browser := handlerstest.NewPerson(t), s.visitor(t)
		begin := func(next string) (callback string) { return person.SignIn(browser.toProvider(next), c.email) }

		first, second := begin("/agents"), begin("/activity")
		browser.get(first).redirects("/agents")
		browser.get(first).redirects("/api-keys") // such as by the button to go back
		browser.get("/api-keys").one("status", "You’re signed in already")
		browser.get(second).redirects("/activity")
		browser.post("/logout", nil)
		browser.get(first).is(http.StatusBadRequest)

		var callbacks []string
		for range 6 {
			callbacks = append(callbacks, begin("/activity?search="+strings.Repeat("a", 200)))
		}
		if got := browser.get(callbacks[0]).status; got != http.StatusBadRequest {
			t.Errorf("the oldest of %d requests gets status %d", len(callbacks), got)
		}
		for _, callback := range callbacks[4:] {
			browser.get(callback).is(http.StatusSeeOther)
		}

		first = begin("/agents")
		clock.Advance(6 * time.Minute)
		begin("/agents")
		clock.Advance(5 * time.Minute)
		browser.post("/logout", nil)
		browser.get(first).is(http.StatusBadRequest).one("alert", "expired")
	})
}

func TestConnectingTakesAFreshSignIn(t *testing.T) {
	clock := modelstest.NewClock(time.Now())
	onProviderSite(t, models.Options{Now: clock.Now}, func(t *testing.T, s *site) {
		c := s.customer(t)
		clock.Advance(11 * time.Minute)
		c.post("/account/identity", nil).is(http.StatusForbidden).one("textbox", "Current password")
		c.post("/account/identity/removal", nil).is(http.StatusForbidden)
		c.post("/account/identity", url.Values{"current_password": {password}}).is(http.StatusOK).one("link", "Continue to Acme ID")
	})
}

func TestIdentityOfAnotherUserIsNotConnected(t *testing.T) {
	onProviderSite(t, models.Options{}, func(t *testing.T, s *site) {
		c, other, member := s.customer(t), s.customer(t), s.visitor(t)
		path, email := c.link()
		member.post(path, nil).redirects("/api-keys")
		member.connectAs(email).redirects("/account")
		page := other.connectAs(email).is(http.StatusConflict)
		page.one("heading", "Connect Acme ID")
		page.one("alert", "belongs to another user")
		page.one("link", "Go to Account")
		other.get("/account").one("button", "Connect Acme ID")

		users := modelstest.Value(s.store.People.List(t.Context(), c.account.ID, value.Page{Limit: 10}))(t)
		for _, user := range users.Items {
			if user.Email == email {
				modelstest.Must(t, s.store.People.Remove(t.Context(), c.account.ID, user.ID, record.Operator()))
			}
		}
		other.connectAs(email).redirects("/account") // the removed user's identity is free
	})
}

func TestInvitedPersonJoinsWithTheProvider(t *testing.T) {
	onProviderSite(t, models.Options{PasswordsOff: true}, func(t *testing.T, s *site) {
		account := modelstest.Value(s.store.Accounts.Create(t.Context(), people.NewAccount{Name: "Example Ltd", Email: "owner@example.com", Password: password}))(t)
		invite := func(email string) string {
			_, token, err := s.store.Invitations.Create(t.Context(), account.ID, email, people.RoleMember, record.Operator())
			modelstest.Must(t, err)
			return "/invitations/" + token
		}
		path, v := invite("ada@example.com"), s.visitor(t)
		page := v.get(path).is(http.StatusOK)
		page.one("heading", "Join Example Ltd")
		page.none("textbox", "Password")
		join := page.one("link", "Join with Acme ID").attr("href")
		v.post(path, url.Values{"password": {"a much longer battery staple"}}).is(http.StatusForbidden)

		// A link on another site, in a mail or typed leads to the page, not to the
		// provider.
		for _, site := range []string{"cross-site", "same-site", "none"} {
			v.send(http.MethodGet, join, "", "Sec-Fetch-Site: "+site).redirects(path)
		}
		v.headers = []string{"Sec-Fetch-Site: same-origin"}
		callback := handlerstest.NewPerson(t).SignIn(v.get(join).is(http.StatusSeeOther).header.Get("Location"), "ada")
		v.headers = nil
		s.visitor(t).get(callback).is(http.StatusBadRequest) // another browser
		v.get(callback).redirects("/api-keys")
		v.get("/account").says("ada@example.com")
		activity := v.get("/activity")
		activity.says("ada@example.com accepted the invitation")
		activity.says("ada@example.com signed in with Acme ID")
		s.visitor(t).get(join).is(http.StatusGone)
		s.visitor(t).signInAs("ada").redirects("/agents")

		// An identity with a user does not use up a second invitation.
		second, w := invite("bob@example.com"), s.visitor(t)
		join = w.get(second).one("link", "Join with Acme ID").attr("href")
		refused := w.get(handlerstest.NewPerson(t).SignIn(w.get(join).header.Get("Location"), "ada")).is(http.StatusConflict)
		refused.one("heading", "Join with Acme ID")
		again := w.get(refused.one("link", "Use another Acme ID identity").attr("href")).header.Get("Location")
		w.get(handlerstest.NewPerson(t).SignIn(again, "bob")).redirects("/api-keys")
	})
}

func TestOnlyWayToSignInIsNotDisconnected(t *testing.T) {
	onProviderSite(t, models.Options{}, func(t *testing.T, s *site) {
		c, v := s.customer(t), s.visitor(t)
		path, _ := c.link()
		v.post(path, nil).redirects("/api-keys")
		v.connectAs(path).redirects("/account")
		bothVoices(t, func(t *testing.T, as voice) {
			refused := as.of(t, v).post("/account/identity/removal", nil).is(http.StatusConflict)
			refused.one("alert", "Set a password first")
			refused.one("button", "Disconnect Acme ID")
		})
		v.post("/account/password", passwords("", "a much longer battery staple")).redirects("/account")
		v.post("/account/identity/removal", nil).redirects("/account")
	})
}

func TestProviderThatRefusesOrIsAway(t *testing.T) {
	t.Parallel()
	provider := handlerstest.StartProvider(t, httpBase)
	s := sqliteSite(t, httpBase).withProvider(t, provider)
	c, v := s.customer(t), s.visitor(t)
	c.connectAs(c.email).redirects("/account")
	refused := v.get(handlerstest.NewPerson(t).Cancel(v.toProvider("/agents"))).is(http.StatusForbidden)
	refused.one("alert", "You may have cancelled")
	v.get(refused.one("link", "Try again").attr("href")).is(http.StatusSeeOther)

	// A new portal does not know the provider's metadata. It starts, and passwords work.
	callback := handlerstest.NewPerson(t).SignIn(v.toProvider("/agents"), c.email)
	provider.Stop()
	v.get(callback).is(http.StatusServiceUnavailable).one("alert", "not available right now")
	restarted := s.withProvider(t, provider).visitor(t)
	page := restarted.get("/login/oidc?next=%2Fagents").is(http.StatusServiceUnavailable)
	page.one("alert", "Acme ID is not available right now")
	page.one("link", "Sign in another way")
	restarted.signIn(c.email, password).redirects("/api-keys")
	restarted.post("/account/identity", nil).is(http.StatusServiceUnavailable).one("link", "Go to Account")

	provider.Start(t)
	again := restarted.get(page.one("link", "Try again").attr("href")).is(http.StatusSeeOther).header.Get("Location")
	restarted.get(handlerstest.NewPerson(t).SignIn(again, c.email)).redirects("/agents")
}

func TestPasswordsAreOff(t *testing.T) {
	onProviderSite(t, models.Options{PasswordsOff: true}, func(t *testing.T, s *site) {
		v := s.visitor(t)
		account := modelstest.Value(s.store.Accounts.Create(t.Context(), people.NewAccount{Name: "Example Ltd", Email: "ada@example.com", Password: password}))(t)
		page := v.get("/login")
		page.none("textbox", "Password")
		page.one("link", "Sign in with Acme ID")
		bothVoices(t, func(t *testing.T, as voice) {
			as.of(t, v).signIn("ada@example.com", password).is(http.StatusForbidden).says("Sign-in with a password is turned off")
		})

		c := customer{visitor: v, email: "ada@example.com", account: account}
		path, _ := c.link()
		v.post(path, nil).redirects("/api-keys")
		v.get("/account").none("textbox", "New password")
		v.post("/account/password", passwords("", "a much longer battery staple")).is(http.StatusForbidden)
		v.connectAs("ada").redirects("/account")
		v.post("/account/identity/removal", nil).is(http.StatusConflict).one("alert", "can’t be disconnected")
		s.visitor(t).signInAs("ada").redirects("/agents")
	})
}

// A provider can recognize a browser whose user has left it.
func TestProviderSignInIsAsFreshAsTheProviderSays(t *testing.T) {
	clock := modelstest.NewClock(time.Now())
	onProviderSite(t, models.Options{PasswordsOff: true, Now: clock.Now}, func(t *testing.T, s *site) {
		account := modelstest.Value(s.store.Accounts.Create(t.Context(), people.NewAccount{Name: "Example Ltd", Email: "ada@example.com", Password: password}))(t)
		c := customer{visitor: s.visitor(t), email: "ada@example.com", account: account}
		path, _ := c.link()
		c.post(path, nil).redirects("/api-keys")
		c.connectAs("ada").redirects("/account")
		c.signInAs("ada").redirects("/agents")
		c.post("/account/identity/removal", nil).is(http.StatusConflict)

		// The provider's clock is that of the machine. The test may have waited since it
		// made its own.
		clock.Advance(40 * time.Minute)
		defer clock.Advance(-40 * time.Minute)
		c.signInAs("ada").redirects("/agents")
		page := c.post("/account/identity/removal", nil).is(http.StatusUnprocessableEntity)
		page.one("link", "Sign in with Acme ID again").with("href", "/login/oidc?again=yes&next=%2faccount")
	})
}

func TestLongAddressesDoNotBreakTheSignIn(t *testing.T) {
	onProviderSite(t, models.Options{}, func(t *testing.T, s *site) {
		// Encoded again, the second is three times as long, and the third in JSON.
		for _, search := range []string{strings.Repeat("a", 3600), strings.Repeat("(", 1000), strings.Repeat("&a=", 330)} {
			address := "/login/oidc?" + url.Values{"next": {"/activity?search=" + search}}.Encode()
			s.visitor(t).get(address).is(http.StatusSeeOther)
		}
	})
}

func TestPagesWithoutAProviderAreTheSame(t *testing.T) {
	t.Parallel()
	c := sqliteSite(t, httpBase).customer(t)
	if text := c.get("/account").text(); strings.Contains(text, "Connect") {
		t.Errorf("the account page has an empty section:\n%s", text)
	}
	for _, path := range []string{"/login/oidc", "/login/oidc/callback?code=x&state=y"} {
		c.get(path).is(http.StatusNotFound)
	}
}
