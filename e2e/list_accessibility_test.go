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
	c, v, keys := arrive(t, sharedPortal(t), withoutMotion)
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
	i.look(t, "many keys")

	keys.Row("busy").Usage()
	i.look(t, "details of a key in use")
	rename := keys.Row("idle 1").Rename()
	i.look(t, "asked for a name")
	rename.Save(" ")
	keys.ExpectAlert()
	i.look(t, "a name refused")
	rename.Escape()

	confirmation := keys.Row("busy").Revoke()
	i.look(t, "asked to confirm for a key in use")
	err := v.Page.Route("**/revocation*", func(route playwright.Route) { _ = route.Abort() })
	if err != nil {
		t.Fatal(err)
	}
	confirmation.Confirm()
	confirmation.ExpectSaying(`not known`)
	i.look(t, "a revocation of unknown outcome")

	keys = pages.OpenKeys(v.Tab)
	keys.Filter("idle")
	i.look(t, "a filtered list")
	keys.Filter("none")
	i.look(t, "nothing found")
	keys.SortBy("Label", "ascending")
	i.look(t, "a sorted list")
}
