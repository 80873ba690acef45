package portal_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"portal/handlers"
	"portal/models"
	"portal/models/modelstest"
	"portal/models/record"
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

	modelstest.Must(t, s.store.Accounts.RequireSecondFactor(t.Context(), c.account.ID, true, record.Operator()))
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

// The visitor learns only that the passkey was refused.
func TestRefusedPasskeyHasItsCauseInTheLog(t *testing.T) {
	t.Parallel()
	var log modelstest.LogBuffer
	c := sqliteSite(t, "https://portal.test").with(t, func(d *handlers.Deps) { d.Logger = log.Logger() }).customer(t)
	answer := func(clientData, authenticatorData string) url.Values {
		encode := base64.RawURLEncoding.EncodeToString
		return url.Values{"credential": {fmt.Sprintf(`{"id": "AQ", "rawId": "AQ", "type": "public-key",
			"response": {"clientDataJSON": %q, "authenticatorData": %q, "signature": "AQ", "userHandle": "AQ"}}`,
			encode([]byte(clientData)), encode([]byte(authenticatorData)))}}
	}
	for _, refused := range []struct {
		path  string
		form  url.Values
		cause string
	}{
		{"/login/passkey", url.Values{"credential": {"{}"}}, "the passkey was refused: CredentialAssertionResponse with ID missing"},
		{"/login/passkey", answer(`{"challenge": "AQ"}`, strings.Repeat("\x00", 37)), "the passkey was refused: its challenge is older"},
		{"/login/passkey", answer(`{`, ""), "the passkey was refused: unexpected end of JSON input"},
		{"/account/passkeys", url.Values{"credential": {"{}"}}, "the passkey was refused: Parse error for Registration: Missing ID"},
	} {
		log.Reset()
		c.post(refused.path, refused.form)
		if line := log.LineWith(`"msg":"request"`); !strings.Contains(line, `"level":"INFO"`) || !strings.Contains(line, `"cause":"`+refused.cause) {
			t.Errorf("%s: the log has %s, want %s", refused.path, line, refused.cause)
		}
	}
}

// Where nobody signs in with a password, an authenticator app has no effect.
func TestAppIsNotOfferedWithoutPasswords(t *testing.T) {
	t.Parallel()
	clock := modelstest.NewClock(time.Now())
	s := newSite(t, modelstest.SQLiteURL(t), "https://portal.test", models.Options{Now: clock.Now})
	c, withApp := s.customer(t), s.customer(t)
	withApp.twoSteps(clock)
	off := newSite(t, s.databaseURL, "https://portal.test", models.Options{Now: clock.Now, PasswordsOff: true})

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

	modelstest.Must(t, s.store.Accounts.RequireSecondFactor(t.Context(), c.account.ID, true, record.Operator()))
	page = c.copiedTo(off).get("/account/second-factor").is(http.StatusOK)
	page.none("button", "Set up authenticator app")
	page.one("button", "Add a passkey")
	// Without passkeys, an app is the only way past the requirement.
	off = newSite(t, s.databaseURL, "https://192.0.2.1", models.Options{Now: clock.Now, PasswordsOff: true})
	c.copiedTo(off).get("/account/second-factor").one("button", "Set up authenticator app")
}
