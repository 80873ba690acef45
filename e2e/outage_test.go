package e2e

import (
	"net/http"
	"testing"

	"portal/e2e/pages"
	"portal/models/modelstest"
	"portal/models/modelstest/postgres"
)

// The server stops after the page has loaded, and starts again.
func TestPageAndInputSurviveAStoppedServer(t *testing.T) {
	t.Parallel()
	p := ownPortal(t, settings{})
	_, v, keys := startSignedIn(t, p)
	v.allow("ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|Failed to fetch")
	keys.Add("stays")

	keys.Type("patient")
	p.pause(t)
	keys.PressGenerate()
	keys.ExpectAlertSaying(`(?i)again`)
	if keys.Label() != "patient" {
		t.Errorf("the field holds %q, want the input", keys.Label())
	}
	keys.ExpectListed("stays")
	p.resume(t)
	keys.PressGenerate()
	pages.ExpectReveal(v.Tab).Abandon()
	keys.ExpectListed("patient")
	keys.ExpectNoAlert()

	confirmation := keys.Row("stays").Revoke()
	p.pause(t)
	confirmation.Confirm()
	keys.ExpectAlertSaying(`(?i)again`)
	confirmation.ExpectOpen()
	p.resume(t)
	confirmation.Confirm()
	keys.ExpectNotListed("stays")
	keys.ExpectListed("patient")
}

// The database stops while the portal runs.
func TestPageAndInputSurviveADatabaseOutage(t *testing.T) {
	t.Parallel()
	p, cluster := portalWithOwnCluster(t)
	_, v, keys := startSignedIn(t, p, withoutMotion)
	v.allowStatus(http.StatusServiceUnavailable)

	keys.Type("patient")
	unscripted := pages.OpenKeys(v.secondTab(t))
	if err := cluster.Halt(); err != nil {
		t.Fatal(err)
	}
	keys.PressGenerate()
	keys.ExpectAlertSaying(`(?i)again`)
	if keys.Label() != "patient" {
		t.Errorf("the field holds %q, want the input", keys.Label())
	}
	unscripted.SubmitAsPage("sent again")
	unscripted.ExpectAlertSaying(`(?i)again`)
	inspect(t, unscripted.Tab).check(t, "a form to send again")
	down := v.secondTab(t)
	down.Open("/api-keys")
	down.ExpectTextSaying(`(?i)unavailable|cannot be reached|try again`)
	if n := v.count(http.MethodGet, "/api-keys", http.StatusServiceUnavailable); n != 1 {
		t.Errorf("%d pages were 503 while the database was down, want one", n)
	}

	inspect(t, down).check(t, "the database down")

	if err := cluster.Resume(); err != nil {
		t.Fatal(err)
	}
	keys.PressGenerate()
	pages.ExpectReveal(v.Tab).Abandon()
	keys.ExpectListed("patient")
}

// Without JavaScript an error page replaces the form. It keeps the input and can send the form
// again.
func TestInputSurvivesADatabaseOutageWithoutJavaScript(t *testing.T) {
	t.Parallel()
	p, cluster := portalWithOwnCluster(t)
	c, v, keys := startSignedIn(t, p, withoutJavaScript, withoutMotion)
	v.allowStatus(http.StatusServiceUnavailable)

	keys.Type("patient")
	if err := cluster.Halt(); err != nil {
		t.Fatal(err)
	}
	keys.PressGenerate()
	for range 2 { // the first form, then the form on the error page
		keys.ExpectAlertSaying(`(?i)again`)
		if keys.Label() != "patient" {
			t.Errorf("the field holds %q, want the input", keys.Label())
		}
		v.TryAgain()
	}
	if err := cluster.Resume(); err != nil {
		t.Fatal(err)
	}
	v.TryAgain()
	pages.ExpectReveal(v.Tab).Abandon()
	keys.ExpectListed("patient")
	if n := keys.Count(); n != 1 {
		t.Errorf("the retries created %d keys, want one", n)
	}

	agents := pages.OpenAgents(v.Tab)
	stranger := visit(t, p.URL, withoutJavaScript)
	stranger.allowStatus(http.StatusServiceUnavailable)
	login := pages.OpenLogin(stranger.Tab)
	if err := cluster.Halt(); err != nil {
		t.Fatal(err)
	}
	agents.Create("Front desk")
	agents.ExpectAlertSaying(`(?i)again`)
	if agents.Name() != "Front desk" {
		t.Errorf("the field holds %q, want the input", agents.Name())
	}
	login.SignIn(c.email, c.password)
	login.ExpectAlertSaying(`(?i)again`)
	if login.Email() != c.email || login.Password() != "" {
		t.Errorf("the fields hold %q and %q, want only the email", login.Email(), login.Password())
	}
	if err := cluster.Resume(); err != nil {
		t.Fatal(err)
	}
	agents.TryAgain()
	agents.ExpectListed("Front desk", "")
}

// portalWithOwnCluster starts a portal on a PostgreSQL cluster that the test may halt.
func portalWithOwnCluster(t *testing.T) (*process, *postgres.Cluster) {
	t.Helper()
	cluster := modelstest.OwnCluster(t)
	return ownPortal(t, settings{databaseURL: cluster.URL("postgres")}), cluster
}
