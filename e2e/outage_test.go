package e2e

import (
	"net/http"
	"testing"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
	"portal/models/modelstest"
)

// The database stops while the portal runs. With JavaScript the page stays. Without it an error
// page replaces the form, keeps the input and can send the form again.
func TestPageAndInputSurviveADatabaseOutage(t *testing.T) {
	t.Parallel()
	cluster := modelstest.OwnCluster(t)
	p := ownPortal(t, settings{databaseURL: cluster.URL("postgres")})
	c, v := startSignedIn(t, p)
	unscripted := c.visit(t, withoutJavaScript)
	stranger := visit(t, p.URL, withoutJavaScript)
	for _, one := range []*visitor{v, unscripted, stranger} {
		one.allowStatus(http.StatusServiceUnavailable)
	}
	c.newKey(t, "restricted")
	restrictions := pages.OpenKeys(v.secondTab(t)).Row("restricted").Restrictions("restricted")
	keys, alone := pages.OpenKeys(v.Tab), pages.OpenKeys(unscripted.Tab)
	agents := pages.OpenAgents(unscripted.secondTab(t))
	login := pages.OpenLogin(stranger.Tab)
	modelstest.Must(t, cluster.Halt())

	keys.Submit("patient")
	keys.ExpectAlert(`(?i)again`)
	if got := keys.Value("Label"); got != "patient" {
		t.Errorf("the field holds %q, want the input", got)
	}
	restrictions.Save("for the shop")
	restrictions.ExpectAlert(`(?i)again`)
	if got := restrictions.Value("Note"); got != "for the shop" {
		t.Errorf("the note holds %q, want the input", got)
	}
	alone.Submit("alone")
	for range 2 { // the first form, then the form on the error page
		alone.ExpectAlert(`(?i)again`)
		if got := alone.Value("Label"); got != "alone" {
			t.Errorf("the field holds %q, want the input", got)
		}
		alone.TryAgain()
	}
	agents.Create("Front desk")
	agents.ExpectAlert(`(?i)again`)
	login.SignIn(c.email, c.password)
	login.ExpectAlert(`(?i)again`)
	if login.Value("Email") != c.email || login.Value("Password") != "" {
		t.Errorf("the fields hold %q and %q, want only the email", login.Value("Email"), login.Value("Password"))
	}
	down := v.secondTab(t)
	down.Open("/api-keys")
	down.ExpectText(`(?i)unavailable|cannot be reached|try again`)
	inspect(t, down).check(t, "the database down")
	if n := v.count(http.MethodGet, "/api-keys", http.StatusServiceUnavailable); n != 1 {
		t.Errorf("%d pages were 503 while the database was down, want one", n)
	}

	modelstest.Must(t, cluster.Resume())
	keys.Click("Generate key")
	pages.ExpectReveal(v.Tab).Abandon()
	keys.Row("patient").ExpectShown()
	alone.TryAgain()
	pages.ExpectReveal(unscripted.Tab).Abandon()
	alone.Row("alone").ExpectShown()
	if n := alone.Count(); n != 3 {
		t.Errorf("the retries created %d keys, want two", n-1)
	}
	agents.TryAgain()
	agents.Row("Front desk").ExpectShown()
}

// A proxy that wants the user to sign in, or a Wi-Fi, answers with a page of its own.
func TestThePageOfAProxyReplacesNothing(t *testing.T) {
	t.Parallel()
	_, v := startSignedIn(t, sharedPortal(t))
	keys := pages.OpenKeys(v.Tab)
	modelstest.Must(t, v.Page.Route("**/api-keys*", func(route playwright.Route) {
		_ = route.Fulfill(playwright.RouteFulfillOptions{ContentType: playwright.String("text/html"), Body: "<!DOCTYPE html><title>Wi-Fi</title><p>Accept our terms"})
	}))
	keys.Submit("patient")
	keys.ExpectAlert(`(?i)again`)
	keys.ExpectNoText(`Accept our terms`)
	if got := keys.Value("Label"); got != "patient" {
		t.Errorf("the field holds %q, want the input", got)
	}
}
