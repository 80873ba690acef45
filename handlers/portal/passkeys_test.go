package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"portal/handlers/handlerstest"
	"portal/models"
	"portal/models/modelstest"
)

// After the password, the user comes back to the button that adds a passkey.
func TestConfirmationLeadsBackToAddAPasskey(t *testing.T) {
	t.Parallel()
	clock := modelstest.NewClock(time.Now())
	s := newSite(t, modelstest.SQLiteURL(t), "https://portal.test", models.Options{Now: clock.Now})
	c := s.customer(t)
	member, _ := c.newMember()
	member.post("/account/password", passwords("", password)).redirects("/account")
	if c.get("/account").one("button", "Add a passkey").has("autofocus") {
		t.Error("the button takes the focus before a confirmation")
	}
	clock.Advance(10 * time.Minute)
	confirmed := url.Values{"credential": {""}, "current_password": {password}}
	c.post("/account/passkeys", url.Values{"credential": {""}}).is(http.StatusForbidden).one("heading", "Confirm it’s you")
	c.post("/account/passkeys", confirmed).redirects("/account?confirmed=passkey")
	expectOffer(t, c.get("/account?confirmed=passkey"))

	modelstest.Must(t, s.store.Accounts.RequireSecondFactor(t.Context(), c.account.ID, true, models.Operator()))
	member.post("/account/passkeys", confirmed).redirects("/account/second-factor?confirmed=passkey")
	expectOffer(t, member.get("/account/second-factor?confirmed=passkey"))
}

func expectOffer(t *testing.T, page answer) {
	t.Helper()
	page.is(http.StatusOK).says("Confirmed. Press “Add a passkey” to continue.")
	page.one("button", "Add a passkey").with("autofocus", "")
}

// A refused passkey leaves the browser at the address of the form.
func TestAddressOfAPasskeyLeadsToSignIn(t *testing.T) {
	t.Parallel()
	v := sqliteSite(t, "https://portal.test").visitor(t)
	v.post("/login/passkey", url.Values{"credential": {"{}"}}).is(http.StatusUnprocessableEntity)
	v.get("/login/passkey").redirects("/login")
}

// withoutPasswords returns the portal over the same database with sign-in by password turned off.
func (s *site) withoutPasswords(t *testing.T, base string, now func() time.Time) *site {
	t.Helper()
	store := modelstest.Open(t, s.databaseURL, models.Options{Now: now, PasswordsOff: true})
	deps := handlerstest.Deps(t, store, base, now)
	deps.CookieKeys = handlerstest.Keyring(t, strings.Repeat("secret", 8), "").CookieKeys()
	deps.PasswordsOff = true
	return &site{store, s.databaseURL, handlerstest.New(t, deps), deps.BaseURL}
}

// Where nobody signs in with a password, an authenticator app has no effect.
func TestAppIsNotOfferedWithoutPasswords(t *testing.T) {
	t.Parallel()
	clock := modelstest.NewClock(time.Now())
	s := newSite(t, modelstest.SQLiteURL(t), "https://portal.test", models.Options{Now: clock.Now})
	c, withApp := s.customer(t), s.customer(t)
	withApp.twoSteps(clock)
	off := s.withoutPasswords(t, "https://portal.test", clock.Now)

	page := c.copiedTo(off).get("/account").is(http.StatusOK)
	page.none("heading", "Two-step verification")
	page.none("button", "Set up authenticator app")
	c.copiedTo(off).get("/settings").is(http.StatusOK).says("If required, everyone must add a passkey.")

	v := withApp.copiedTo(off)
	page = v.get("/account")
	page.says("so no code is asked for")
	page.none("button", "Generate new recovery codes")
	page.one("button", "Turn off")
	v.post("/account/authenticator/removal", nil).redirects("/account")
	v.get("/account").none("heading", "Two-step verification")

	modelstest.Must(t, s.store.Accounts.RequireSecondFactor(t.Context(), c.account.ID, true, models.Operator()))
	page = c.copiedTo(off).get("/account/second-factor").is(http.StatusOK)
	page.none("button", "Set up authenticator app")
	page.one("button", "Add a passkey")
	// Without passkeys, an app is the only way past the requirement.
	off = s.withoutPasswords(t, "https://192.0.2.1", clock.Now)
	c.copiedTo(off).get("/account/second-factor").one("button", "Set up authenticator app")
}
