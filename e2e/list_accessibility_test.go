package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
)

func TestEveryStateOfTheListIsAccessibleAndFits(t *testing.T) {
	t.Parallel()
	c, v, keys := startSignedIn(t, sharedPortal(t), withoutMotion)
	v.allowStatus(http.StatusUnprocessableEntity)
	v.allow("ERR_FAILED|Failed to fetch")
	i := inspect(t, v.Tab)
	agentID := c.newAgent(t, "Front desk")
	secret := keys.Add("busy")
	backend{site: c.at.URL, key: secret}.expectServed(t, agentID)
	cookies := v.cookies(t)
	for n := range 10 {
		c.generate(t, cookies, fmt.Sprintf("idle %d", n))
	}
	keys = pages.OpenKeys(v.Tab)
	i.check(t, "many keys")

	keys.Row("busy").Usage()
	i.check(t, "details of a key in use")
	keys.Row("idle 3").OpenMenu()
	i.check(t, "an open menu")
	keys.Press("Escape")
	rename := keys.Row("idle 1").Rename()
	i.check(t, "a rename")
	rename.Save(" ")
	keys.ExpectAlert()
	i.check(t, "a name refused")
	rename.Escape()

	confirmation := keys.Row("busy").Revoke()
	i.check(t, "revocation of a key in use to confirm")
	err := v.Page.Route("**/revocation*", func(route playwright.Route) { _ = route.Abort() })
	if err != nil {
		t.Fatal(err)
	}
	confirmation.Confirm()
	confirmation.ExpectSaying(`couldn’t confirm`)
	i.check(t, "a revocation with an unknown outcome")

	keys = pages.OpenKeys(v.Tab)
	keys.Filter("idle")
	i.check(t, "a filtered list")
	keys.Filter("none")
	i.check(t, "nothing found")
	keys.Filter("idle")
	keys.SortBy("Label", "ascending")
	i.check(t, "a sorted list")
}
