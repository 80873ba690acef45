package e2e

import (
	"net/http"
	"testing"

	"portal/e2e/pages"
	"portal/models/modelstest"
	"portal/models/modelstest/postgres"
)

// The server goes away between the page and the click, and comes back.
func TestAStoppedServerKeepsPageAndInputAndCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	p := ownPortal(t, settings{})
	_, v, keys := arrive(t, p)
	v.allow("ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|Failed to fetch")
	keys.Add("stays")

	keys.Type("patient")
	p.pause(t)
	keys.PressGenerate()
	keys.ExpectAlertSaying(`(?i)again`)
	if keys.Label() != "patient" {
		t.Errorf("the field holds %q instead of what was typed", keys.Label())
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

// The database goes away under a running portal.
func TestADatabaseAwayKeepsPageAndInputAndCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	p, cluster := portalWithItsDatabase(t)
	_, v, keys := arrive(t, p, withoutMotion)
	v.allowStatus(http.StatusServiceUnavailable)

	keys.Type("patient")
	unscripted := pages.OpenKeys(v.secondTab(t))
	if err := cluster.Halt(); err != nil {
		t.Fatal(err)
	}
	keys.PressGenerate()
	keys.ExpectAlertSaying(`(?i)again`)
	if keys.Label() != "patient" {
		t.Errorf("the field holds %q instead of what was typed", keys.Label())
	}
	unscripted.SubmitAsPage("offered again")
	unscripted.ExpectAlertSaying(`(?i)again`)
	inspect(t, unscripted.Tab).look(t, "a form offered again")
	away := v.secondTab(t)
	away.Open("/api-keys")
	away.ExpectTextSaying(`(?i)unavailable|cannot be reached|try again`)
	if n := v.count(http.MethodGet, "/api-keys", http.StatusServiceUnavailable); n != 1 {
		t.Errorf("%d pages were 503 while the database was away, want one", n)
	}

	inspect(t, away).look(t, "the database away")

	if err := cluster.Resume(); err != nil {
		t.Fatal(err)
	}
	keys.PressGenerate()
	pages.ExpectReveal(v.Tab).Abandon()
	keys.ExpectListed("patient")
}

// Without scripts the page cannot stay, so the one in its place has what was typed, and the form to send it again.
func TestADatabaseAwayLosesNothingWithoutJavaScript(t *testing.T) {
	t.Parallel()
	p, cluster := portalWithItsDatabase(t)
	c, v, keys := arrive(t, p, withoutJavaScript, withoutMotion)
	v.allowStatus(http.StatusServiceUnavailable)

	keys.Type("patient")
	if err := cluster.Halt(); err != nil {
		t.Fatal(err)
	}
	keys.PressGenerate()
	for range 2 { // the second is of the form that is offered again
		keys.ExpectAlertSaying(`(?i)again`)
		if keys.Label() != "patient" {
			t.Errorf("the field holds %q instead of what was typed", keys.Label())
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
		t.Errorf("trying again made %d keys", n)
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
		t.Errorf("the field holds %q instead of what was typed", agents.Name())
	}
	login.SignIn(c.email, c.password)
	login.ExpectAlertSaying(`(?i)again`)
	if login.Email() != c.email || login.Password() != "" {
		t.Errorf("the fields hold %q and %q, want the e-mail alone", login.Email(), login.Password())
	}
	if err := cluster.Resume(); err != nil {
		t.Fatal(err)
	}
	agents.TryAgain()
	agents.ExpectListed("Front desk", "")
}

// portalWithItsDatabase is a portal for this test alone, on PostgreSQL that the test may halt.
func portalWithItsDatabase(t *testing.T) (*process, *postgres.Cluster) {
	t.Helper()
	cluster := modelstest.OwnCluster(t)
	return ownPortal(t, settings{databaseURL: cluster.URL("postgres")}), cluster
}
