package e2e

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"portal/e2e/pages"
	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

func TestTwoStepVerification(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		p := sharedPortal(t)
		c := p.newCustomer(t)
		v := visit(t, p.URL, mode, withoutMotion)
		v.allowStatus(http.StatusUnprocessableEntity)
		c.signIn(v.Tab)
		account := pages.OpenAccount(v.Tab)
		secret := account.SetUpAuthenticator()
		if v.JavaScript {
			inspect(t, v.Tab).check(t, "set-up of an authenticator app")
		}
		code, err := totp.GenerateCode(secret, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		recovery := account.TurnOnTwoSteps(code)
		if len(recovery) != 10 {
			t.Fatalf("the recovery codes are %v", recovery)
		}
		account.SignOut()
		pages.OpenLogin(v.Tab).SignIn(c.email, c.password)
		second := pages.ExpectSecondStep(v.Tab)
		if v.JavaScript {
			inspect(t, v.Tab).check(t, "second step")
		}
		second.Verify(code) // a used code
		v.ExpectAlertSaying("The code is incorrect")
		second.Verify(recovery[0])
		pages.ExpectKeys(v.Tab)
		pages.OpenAccount(v.Tab).TurnOffTwoSteps()
	})
}

// A passkey is created and used with Chromium's virtual authenticator. Browsers offer passkeys on
// localhost, but not at an IP address.
func TestPasskey(t *testing.T) {
	t.Parallel()
	address, err := subprocess.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	site := "http://localhost:" + port
	p := ownPortal(t, settings{address: address, baseURL: site})
	c := p.newCustomer(t)
	v := visit(t, site, withoutMotion)
	v.addAuthenticator(t)
	c.signIn(v.Tab)
	account := pages.OpenAccount(v.Tab)
	account.AddPasskey()
	inspect(t, v.Tab).check(t, "account with a passkey")
	account.SignOut()
	pages.ExpectLogin(v.Tab).SignInWithPasskey()
	pages.ExpectKeys(v.Tab)
	pages.OpenAccount(v.Tab).RemovePasskey()

	modelstest.Exec(t, p.settings.databaseURL, "UPDATE sessions SET created_at = '2026-01-01 00:00:00+00:00'")
	v.allowStatus(http.StatusForbidden)
	pages.OpenAccount(v.Tab).AddPasskeyAfterConfirming(c.password)
}

// addAuthenticator adds a virtual authenticator that verifies its user to the tab.
func (v *visitor) addAuthenticator(t *testing.T) {
	t.Helper()
	session, err := v.context.NewCDPSession(v.Page)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []struct {
		method     string
		parameters map[string]any
	}{
		{"WebAuthn.enable", map[string]any{}},
		{"WebAuthn.addVirtualAuthenticator", map[string]any{"options": map[string]any{
			"protocol": "ctap2", "transport": "internal", "hasResidentKey": true, "hasUserVerification": true,
			"isUserVerified": true, "automaticPresenceSimulation": true,
		}}},
	} {
		if _, err := session.Send(command.method, command.parameters); err != nil {
			t.Fatalf("%s: %v", command.method, err)
		}
	}
}
