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

// The portal asks for no attestation, so it accepts every one (WebAuthn, section 7.1).
func TestAttestationOfAPasskeyIsIgnored(t *testing.T) {
	t.Parallel()
	s := sqliteSite(t, "https://portal.test")
	for format, statement := range map[string]map[string]any{
		"none": {}, "packed": {}, "android-safetynet": {"ver": "1"}, "of tomorrow": {"x": 1}, "none ": {}, "apple": {"x5c": []any{}},
		"tpm": {"ver": "2.0", "alg": -65535, "sig": []byte{1}}, "fido-u2f": {"sig": []byte{1}, "x5c": []any{[]byte{1}}},
	} {
		a := newAuthenticator(t)
		a.format, a.statement = format, statement
		c := s.customer(t)
		a.create(c.visitor).redirects("/account")
		c.get("/account").one("status", "Passkey added")
		a.signIn(s.visitor(t)).is(http.StatusSeeOther)
	}
}

// Some authenticators leave out the handle of the user, which the passkey itself finds.
func TestHandleOfThePasskeysUser(t *testing.T) {
	t.Parallel()
	s := sqliteSite(t, "https://portal.test")
	a := newAuthenticator(t)
	a.create(s.customer(t).visitor).redirects("/account")
	handle := a.user
	for _, a.user = range []string{handle, ""} {
		a.signIn(s.visitor(t)).is(http.StatusSeeOther)
	}
	a.user = base64url([]byte("another user's"))
	a.signIn(s.visitor(t)).is(http.StatusUnprocessableEntity)
}

// Each copy of a passkey counts by itself, so its counter is no sign of another copy.
func TestCounterOfACopiedPasskey(t *testing.T) {
	t.Parallel()
	s := sqliteSite(t, "https://portal.test")
	for _, test := range []struct {
		copied bool
		counts []uint32 // at its creation, then at sign-ins
		want   int      // the status of the last one
	}{
		{false, []uint32{0, 0, 0}, http.StatusSeeOther},
		{false, []uint32{3, 4, 5}, http.StatusSeeOther},
		{false, []uint32{3, 5, 5}, http.StatusUnprocessableEntity},
		{false, []uint32{3, 5, 0}, http.StatusUnprocessableEntity},
		{true, []uint32{3, 5, 5}, http.StatusSeeOther},
		{true, []uint32{3, 5, 4}, http.StatusSeeOther},
		{true, []uint32{3, 5, 0}, http.StatusSeeOther},
	} {
		a := newAuthenticator(t)
		a.copied, a.count = test.copied, test.counts[0]
		a.create(s.customer(t).visitor).redirects("/account")
		var last answer
		for _, a.count = range test.counts[1:] {
			last = a.signIn(s.visitor(t))
		}
		if last.status != test.want {
			t.Errorf("%+v: %d", test, last.status)
		}
	}
	// It was not copied before.
	a := newAuthenticator(t)
	a.count = 7
	a.create(s.customer(t).visitor).redirects("/account")
	a.copied, a.count = true, 0
	a.signIn(s.visitor(t)).is(http.StatusSeeOther)
}
