package e2e

import (
	"net/http"
	"strings"
	"testing"

	"portal/e2e/pages"
	"portal/handlers/handlerstest"
	"portal/models/modelstest/subprocess"
)

// portalWithProvider starts a portal with an OpenID Connect provider.
func portalWithProvider(t *testing.T, extra ...string) (*process, *handlerstest.Provider) {
	t.Helper()
	address, err := subprocess.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	provider := handlerstest.StartProvider(t, "http://"+address)
	c := provider.Config
	extra = append(extra, "PORTAL_OIDC_ISSUER="+c.Issuer, "PORTAL_OIDC_CLIENT_ID="+c.ClientID, "PORTAL_OIDC_CLIENT_SECRET="+c.ClientSecret, "PORTAL_OIDC_NAME="+c.Name)
	return ownPortal(t, settings{address: address, extra: extra}), provider
}

func TestAProviderIsConnectedAndSignsIn(t *testing.T) {
	t.Parallel()
	p, provider := portalWithProvider(t)
	inBothModes(t, func(t *testing.T, mode profile) {
		c := p.newCustomer(t)
		v := visit(t, p.URL, mode, withoutMotion)
		// The provider's own page loads a font from another site and lacks an icon.
		v.allow("ERR_NAME_NOT_RESOLVED|ERR_INTERNET_DISCONNECTED|status of 404|Input elements should have autocomplete")
		v.allowStatus(http.StatusForbidden, http.StatusServiceUnavailable, http.StatusBadRequest)
		pages.OpenLogin(v.Tab).FollowToProvider("Acme ID").SignIn("ada-" + c.email)
		v.ExpectAlertSaying(`No user here is connected`)
		if v.JavaScript {
			inspect(t, v.Tab).check(t, "an unknown identity")
		}
		c.signIn(v.Tab)
		account := pages.OpenAccount(v.Tab)
		account.Connect("Acme ID") // the browser has a session at the provider
		account = pages.ExpectAccount(v.Tab)
		account.ExpectStatusSaying(`Acme ID connected`)
		account.ExpectConnected("Acme ID", true)
		if v.JavaScript {
			inspect(t, v.Tab).check(t, "a connected provider")
		}
		account.SignOut()

		v.Open("/agents") // leads to the sign-in page, and back
		login := pages.ExpectLogin(v.Tab)
		v.clearCookies(t)
		login.FollowToProvider("Acme ID").SignIn("ada-" + c.email)
		pages.ExpectAgents(v.Tab)
		account = pages.OpenAccount(v.Tab)
		account.Disconnect("Acme ID")
		account.ExpectStatusSaying(`Acme ID disconnected`)
		account.ExpectConnected("Acme ID", false)
		if log := p.log.String(); strings.Contains(log, provider.Config.ClientSecret) || strings.Contains(log, "state=") || strings.Contains(log, "code=") {
			t.Errorf("the log contains a secret:\n%s", log)
		}
	})
}

// The provider is away, so the portal shows its error page.
func TestALongNameOfAProviderThatIsAwayFits(t *testing.T) {
	t.Parallel()
	address, err := subprocess.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("W", 40)
	p := ownPortal(t, settings{extra: []string{
		"PORTAL_OIDC_ISSUER=http://" + address, "PORTAL_OIDC_CLIENT_ID=portal",
		"PORTAL_OIDC_CLIENT_SECRET=secret", "PORTAL_OIDC_NAME=" + name,
	}})
	_, v, _ := startSignedIn(t, p, withoutMotion)
	v.allowStatus(http.StatusServiceUnavailable)
	i := inspect(t, v.Tab)
	account := pages.OpenAccount(v.Tab)
	i.check(t, "connect a provider")
	account.Connect(name)
	v.ExpectAlertSaying(`is not available right now`)
	i.check(t, "a provider that is away")
	v.clearCookies(t)
	pages.OpenLogin(v.Tab)
	i.check(t, "sign-in with a provider")
	v.Open("/login/oidc")
	v.ExpectAlertSaying(`is not available right now`)
	i.check(t, "sign-in with a provider that is away")
}
