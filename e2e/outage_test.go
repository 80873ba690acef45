package e2e

import (
	"net/http"
	"testing"

	"portal/e2e/pages"
	"portal/models/modelstest"
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
	cluster, err := modelstest.StartCluster()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	p := ownPortal(t, settings{databaseURL: cluster.URL("postgres")})
	_, v, keys := arrive(t, p, withoutMotion)
	v.allowStatus(http.StatusServiceUnavailable)

	keys.Type("patient")
	if err := cluster.Halt(); err != nil {
		t.Fatal(err)
	}
	keys.PressGenerate()
	keys.ExpectAlertSaying(`(?i)again`)
	if keys.Label() != "patient" {
		t.Errorf("the field holds %q instead of what was typed", keys.Label())
	}
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
