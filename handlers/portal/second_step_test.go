package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"portal/handlers"
	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
)

// clocked runs a test on both databases with a clock that the test moves.
func clocked(t *testing.T, run func(t *testing.T, s *site, clock *modelstest.Clock)) {
	t.Helper()
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		clock := modelstest.NewClock(time.Now())
		run(t, newSite(t, databaseURL, httpBase, models.Options{Now: clock.Now}), clock)
	})
}

func codes(code string) url.Values { return url.Values{"code": {code}} }

// authenticatorSecret returns the secret that the page shows.
func (a answer) authenticatorSecret() string {
	a.t.Helper()
	return strings.ReplaceAll(a.byID("authenticator-secret").text(), " ", "")
}

func codeOf(t testing.TB, secret string, at time.Time) string {
	t.Helper()
	code := modelstest.Value(totp.GenerateCode(secret, at))(t)
	return code
}

// twoSteps turns two-step verification on. It returns the secret of the app and the recovery codes.
// The next code is unused.
func (c customer) twoSteps(clock *modelstest.Clock) (secret string, recovery []string) {
	c.t.Helper()
	c.get("/account").one("button", "Set up authenticator app")
	setUp := c.post("/account/authenticator", nil).is(http.StatusOK)
	setUp.one("img", "QR code")
	secret = setUp.authenticatorSecret()
	done := c.post("/account/authenticator/confirmation", codes(codeOf(c.t, secret, clock.Now()))).is(http.StatusOK)
	for _, item := range done.one("list", "Recovery codes").all("listitem", "") {
		recovery = append(recovery, item.text())
	}
	if len(recovery) != 10 {
		c.t.Fatalf("the page shows the recovery codes %v", recovery)
	}
	clock.Advance(time.Minute)
	return secret, recovery
}

func TestSignInInTwoSteps(t *testing.T) {
	clocked(t, func(t *testing.T, s *site, clock *modelstest.Clock) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			secret, recovery := c.twoSteps(clock)
			browser := s.visitor(t)
			v := as.of(t, browser)
			browser.get("/login/verification").redirects("/login?next=%2Fapi-keys")
			v.post("/login", url.Values{"email": {c.email}, "password": {password}, "next": {"/agents"}}).redirects("/login/verification?next=%2Fagents")
			// The first step opens nothing but the second.
			for _, path := range []string{"/", "/api-keys", "/account", "/activity", "/agents"} {
				browser.get(path).is(http.StatusSeeOther)
			}
			browser.post("/account/authenticator/removal", nil).redirects("/login?next=%2Faccount")
			page := browser.get("/login/verification?next=%2Fagents").is(http.StatusOK)
			page.one("heading", "Two-step verification")
			page.one("button", "Verify")
			if next := page.hidden("next"); next != "/agents" {
				t.Errorf("next is %q", next)
			}
			page.one("textbox", "Code").with("autocomplete", "one-time-code")
			refused := v.post("/login/verification", codes("000000")).is(http.StatusUnprocessableEntity)
			refused.one("alert", "Incorrect code.")
			// Another browser cannot make the second step.
			s.visitor(t).post("/login/verification", codes(codeOf(t, secret, clock.Now()))).redirects("/login?next=%2Fapi-keys")
			v.post("/login/verification", url.Values{"code": {codeOf(t, secret, clock.Now())}, "next": {"/agents"}}).redirects("/agents")
			browser.get("/agents").is(http.StatusOK)
			browser.get("/login/verification").redirects("/login?next=%2Fapi-keys")
			browser.get("/activity").says("signed in with a code", "turned on two-step verification")
			// The session that turned it on has stayed.
			c.get("/api-keys").is(http.StatusOK)

			lost := s.visitor(t)
			lost.signIn(c.email, password).redirects("/login/verification?next=%2Fapi-keys")
			lost.post("/login/verification", codes(recovery[0])).redirects("/api-keys")
			lost.get("/account").says("You signed in with a recovery code. 9 codes are left.", "9 recovery codes left")
			outside := s.visitor(t)
			outside.signIn(c.email, password)
			if outside.sessionCookie() != "" {
				t.Error("the first step sets a session cookie")
			}
			clock.Advance(10 * time.Minute)
			outside.post("/login/verification", codes(codeOf(t, secret, clock.Now()))).redirects("/login?next=%2Fapi-keys")
			outside.get("/login").says("The sign-in has expired.")
		})
	})
}

func TestAuthenticatorIsSetUpAndTurnedOff(t *testing.T) {
	clocked(t, func(t *testing.T, s *site, clock *modelstest.Clock) {
		c := s.customer(t)
		phone := c.elsewhere(iPhone)
		started := c.post("/account/authenticator", nil).is(http.StatusOK)
		wrong := c.post("/account/authenticator/confirmation", codes("abcdef")).is(http.StatusUnprocessableEntity)
		wrong.one("alert", "Incorrect code.")
		if strings.Contains(strings.ReplaceAll(wrong.text(), " ", ""), started.authenticatorSecret()) {
			t.Error("the secret is shown again")
		}
		phone.get("/api-keys").is(http.StatusOK)
		c.twoSteps(clock)
		phone.get("/api-keys").is(http.StatusSeeOther)
		for button, confirm := range map[string]string{"Turn off": "Confirm turning off", "Generate new recovery codes": "Confirm new codes"} {
			asked := c.get(c.get("/account").one("button", button).form().attr("action")).is(http.StatusOK)
			asked.one("button", confirm)
			asked.one("button", "Cancel")
		}
		c.post("/account/authenticator", nil).redirects("/account")
		c.get("/account").says("Two-step verification is already on.")
		renewed := c.post("/account/recovery-codes", nil).is(http.StatusOK)
		if n := len(renewed.one("list", "Recovery codes").all("listitem", "")); n != 10 {
			t.Errorf("%d codes", n)
		}
		c.post("/account/authenticator/removal", nil).redirects("/account")
		c.get("/account").says("Two-step verification turned off.")
		c.post("/account/recovery-codes", nil).redirects("/account")
		s.visitor(t).signIn(c.email, password).redirects("/api-keys")
	})
}

// A form that changes how the user signs in asks for the password ten minutes after the sign-in.
func TestOldSignInIsConfirmedByThePassword(t *testing.T) {
	clocked(t, func(t *testing.T, s *site, clock *modelstest.Clock) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			secret := c.post("/account/authenticator", nil).is(http.StatusOK).authenticatorSecret()
			clock.Advance(10 * time.Minute)
			v := as.of(t, c.visitor)
			stolen := c.copied()
			asked := v.post("/account/authenticator/confirmation", codes("123456")).is(http.StatusForbidden)
			asked.one("heading", "Confirm it’s you")
			button := asked.one("button", "Continue")
			if action := button.form().attr("action"); action != "/account/authenticator/confirmation" || asked.hidden("code") != "123456" {
				t.Errorf("the form leads to %s with the code %q", action, asked.hidden("code"))
			}
			sent := codes("123456")
			sent.Set("current_password", "wrong "+password)
			refused := v.post("/account/authenticator/confirmation", sent).is(http.StatusUnprocessableEntity)
			refused.one("alert", "The current password is incorrect.")
			if strings.Contains(refused.body, "wrong "+password) {
				t.Error("the password is sent back")
			}
			sent = codes(codeOf(t, secret, clock.Now()))
			sent.Set("current_password", password)
			v.post("/account/authenticator/confirmation", sent).is(http.StatusOK).one("list", "Recovery codes")
			stolen.get("/account").is(http.StatusSeeOther)
			// Now the sign-in is fresh again.
			c.post("/account/authenticator/removal", nil).redirects("/account")
			clock.Advance(10 * time.Minute)
			c.post("/account/authenticator", nil).is(http.StatusForbidden)

			member, _ := c.newMember()
			member.post("/account/authenticator", nil).is(http.StatusOK)
			clock.Advance(10 * time.Minute)
			as.of(t, member).post("/account/authenticator", url.Values{"current_password": {""}}).is(http.StatusUnprocessableEntity).
				one("alert", "Sign out, sign in again")
		})
	})
}

// A user whose account requires a second factor can only set one up or sign out.
func TestSecondFactorIsSetUpFirst(t *testing.T) {
	clocked(t, func(t *testing.T, s *site, clock *modelstest.Clock) {
		c := s.customer(t)
		member, _ := c.newMember()
		modelstest.Must(t, s.store.Accounts.RequireSecondFactor(t.Context(), c.account.ID, true, record.Operator()))
		for _, v := range []*visitor{member, member.fragments()} {
			for _, path := range []string{"/", "/api-keys", "/account", "/activity", "/agents", "/activity/export"} {
				v.get(path).redirects("/account/second-factor")
			}
			v.post("/api-keys", url.Values{"label": {"prod"}}).redirects("/account/second-factor")
			v.post("/account/password", passwords("", firstPassword)).redirects("/account/second-factor")
		}
		member.get("/account/second-factor").is(http.StatusOK).one("button", "Sign out")
		secret := member.post("/account/authenticator", nil).is(http.StatusOK).authenticatorSecret()
		member.post("/account/authenticator/confirmation", codes(codeOf(t, secret, clock.Now()))).is(http.StatusOK)
		member.get("/account").is(http.StatusOK)
		member.get("/account/second-factor").redirects("/account")
		c.get("/api-keys").redirects("/account/second-factor")
	})
}

// An owner requires two-step verification after a confirmation, and not without a second factor.
func TestOwnersRequireTwoStepVerification(t *testing.T) {
	clocked(t, func(t *testing.T, s *site, clock *modelstest.Clock) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			member := c.colleague(people.RoleMember)
			required := url.Values{"required": {"yes"}}
			as.of(t, member.visitor).get("/settings").is(http.StatusForbidden).says("Ask an owner to change")
			member.get("/settings").one("heading", "Only owners can open Settings")
			as.of(t, member.visitor).post("/settings/two-step", required).is(http.StatusForbidden)
			v := as.of(t, c.visitor)
			v.get("/settings/two-step").redirects("/settings")
			v.post("/settings/two-step", required).is(http.StatusConflict).says("for yourself first")
			if !c.get("/settings").one("button", "Require two-step verification").has("disabled") {
				t.Error("an owner without a second factor may require one")
			}
			c.twoSteps(clock)
			asked := v.get("/settings/two-step").is(http.StatusOK)
			asked.says("1 of 2 people has no authenticator app or passkey.")
			asked.one("button", "Cancel")
			asked.one("button", "Confirm")
			v.post("/settings/two-step", required).redirects("/settings")
			member.get("/api-keys").redirects("/account/second-factor")
			asked = v.get("/settings/two-step").is(http.StatusOK)
			asked.one("button", "Confirm")
			v.post("/settings/two-step", url.Values{"required": {"no"}}).redirects("/settings")
			member.get("/api-keys").is(http.StatusOK)
		})
	})
}

func TestAccountIsRenamed(t *testing.T) {
	asCustomer(t, models.Options{}, func(_ *testing.T, c customer, v *visitor) {
		refused := v.post("/settings/name", url.Values{"name": {strings.Repeat("x", 101)}}).is(http.StatusUnprocessableEntity)
		refused.one("textbox", "Account name").with("value", strings.Repeat("x", 101)).with("aria-invalid", "true")
		follow(c.visitor, v.post("/settings/name", url.Values{"name": {" Acme "}}))
		page := c.get("/settings").is(http.StatusOK)
		page.one("textbox", "Account name").with("value", "Acme")
		page.one("link", "Settings")
	})
}

// The rename is committed, but the account cannot be read after it.
func TestARenameThatCannotBeReadBackHasOneResponse(t *testing.T) {
	t.Parallel()
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{})
	c := s.customer(t)
	modelstest.Exec(t, s.databaseURL, `CREATE TRIGGER broken AFTER UPDATE OF name ON accounts
		BEGIN UPDATE accounts SET created_at = 'never' WHERE id = NEW.id; END`)
	failed := c.fragments().post("/settings/name", naming("Acme")).is(http.StatusInternalServerError)
	failed.says("Something went wrong")
	failed.none("textbox", "Account name")
}

// A user without an authenticator app has no code to enter.
func TestSecondStepOfAUserWithPasskeysOnly(t *testing.T) {
	t.Parallel()
	s := sqliteSite(t, "https://portal.test")
	c := s.customer(t)
	user := modelstest.Value(s.store.SignIn.VerifyPassword(t.Context(), c.email, password, people.Client{}))(t)
	token := modelstest.Value(s.store.SignIn.Start(t.Context(), user, people.Client{}))(t).Token
	session := modelstest.Value(s.store.Sessions.Find(t.Context(), token, people.Client{}))(t)
	actor := record.UserActor(user.ID, "192.0.2.1")
	passkey := people.Passkey{CredentialID: []byte("a passkey"), Credential: "{}", Name: "Phone"}
	modelstest.Must(t, s.store.Credentials.AddPasskey(t.Context(), session, passkey, "a challenge", actor))
	added := modelstest.Value(s.store.Credentials.FindPasskey(t.Context(), passkey.CredentialID))(t)
	removal := "/account/passkeys/" + added.ID.String() + "/removal"
	bothVoices(t, func(t *testing.T, as voice) {
		asked := as.of(t, c.visitor).get(removal).is(http.StatusOK)
		asked.one("button", "Confirm removal")
		asked.one("button", "Cancel").with("autofocus", "")
	})
	modelstest.Must(t, s.store.Accounts.RequireSecondFactor(t.Context(), user.AccountID, true, actor))
	bothVoices(t, func(t *testing.T, as voice) {
		for _, refused := range []answer{as.of(t, c.visitor).get(removal), as.of(t, c.visitor).post(removal, nil)} {
			refused.is(http.StatusConflict).one("alert", "This account requires two-step verification, and this is your only factor.")
			refused.none("button", "Confirm removal")
		}
	})
	v := s.visitor(t)
	v.signIn(c.email, password).redirects("/login/verification?next=%2Fapi-keys")
	page := v.get("/login/verification").is(http.StatusOK)
	page.one("button", "Use a passkey")
	page.none("textbox", "Code")
	page.none("button", "Verify")
}

func TestLastRequiredAppStaysOn(t *testing.T) {
	clocked(t, func(t *testing.T, s *site, clock *modelstest.Clock) {
		c := s.customer(t)
		c.twoSteps(clock)
		modelstest.Must(t, s.store.Accounts.RequireSecondFactor(t.Context(), c.account.ID, true, record.Operator()))
		bothVoices(t, func(t *testing.T, as voice) {
			for _, refused := range []answer{as.of(t, c.visitor).get("/account/authenticator/removal"), as.of(t, c.visitor).post("/account/authenticator/removal", nil)} {
				refused.is(http.StatusConflict).one("alert", "this is your only factor").one("link", "Settings")
			}
		})
	})
}

// Browsers offer passkeys at a host name with https, and on localhost.
func TestPasskeysAreOfferedWhereBrowsersSupportThem(t *testing.T) {
	t.Parallel()
	for base, offered := range map[string]bool{
		"https://portal.test": true, "http://localhost:8080": true, "http://portal.test": false,
		"http://127.0.0.1:8080": false, "https://[::1]": false, "https://192.0.2.1": false, "https://intranet": false,
	} {
		s := sqliteSite(t, base)
		buttons := len(s.visitor(t).get("/login").is(http.StatusOK).all("button", "Use a passkey"))
		if (buttons == 1) != offered {
			t.Errorf("%s: %d buttons", base, buttons)
		}
		account := s.customer(t).get("/account")
		if buttons := len(account.all("button", "Add a passkey")); (buttons == 1) != offered {
			t.Errorf("%s: %d buttons to add one", base, buttons)
		}
		if !offered {
			account.says("Passkeys need a host name.")
		}
	}
}

func TestForgedPasskeyIsRefused(t *testing.T) {
	t.Parallel()
	s := sqliteSite(t, "https://portal.test")
	c := s.customer(t)
	options := c.post("/account/passkeys/options", nil).is(http.StatusOK)
	if !strings.Contains(options.body, `"userVerification":"required"`) || !strings.Contains(options.body, `"id":"portal.test"`) {
		t.Errorf("the options are %s", options.body)
	}
	c.post("/account/passkeys", url.Values{"credential": {"{}"}}).redirects("/account")
	c.get("/account").says("The passkey could not be added.")
	v := s.visitor(t)
	for range 2 { // with a challenge, and without
		for _, credential := range []string{"", "{}", "x"} {
			v.post("/login/passkey", url.Values{"credential": {credential}}).is(http.StatusUnprocessableEntity).one("alert", "This passkey was not accepted.")
		}
		v.post("/login/passkey/options", nil).is(http.StatusOK)
	}
}

// The page that asks for the password says what it is for and keeps the operator's notice. With
// JavaScript, the link of an invitation is in the dialog of the page of people afterwards.
func TestInvitationAfterTheConfirmationOfASignIn(t *testing.T) {
	clocked(t, func(t *testing.T, s *site, clock *modelstest.Clock) {
		s = s.with(t, func(d *handlers.Deps) { d.Notice = "Maintenance at noon" })
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			clock.Advance(10 * time.Minute)
			v := as.of(t, c.visitor)
			fields := url.Values{"email": {"mia@example.com"}, "role": {"member"}}
			asked := v.post("/people/invitations", fields).is(http.StatusForbidden)
			asked.says("Maintenance at noon", "Enter your password to invite mia@example.com.")
			fields.Set("current_password", password)
			created := v.post("/people/invitations", fields).is(http.StatusOK)
			created.one("heading", "Invitation created")
			created.one("textbox", "Invitation link")
			if !as.htmx {
				return
			}
			created.one("dialog", "Invitation created")
			created.says("Maintenance at noon")
			created.one("table", "People").says("mia@example.com")
		})
	})
}
