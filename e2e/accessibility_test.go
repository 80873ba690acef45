package e2e

import (
	"net/http"
	"strings"
	"testing"

	"portal/e2e/pages"
)

func TestEveryStateOfTheKeysPageIsAccessibleAndFits(t *testing.T) {
	t.Parallel()
	c := sharedPortal(t).newCustomer(t)
	v := visit(t, c.at.URL, withClipboard, withoutMotion)
	v.allowStatus(http.StatusUnauthorized, http.StatusUnprocessableEntity)
	i := inspect(t, v.Tab)

	login := pages.OpenLogin(v.Tab)
	i.check(t, "sign-in")
	login.SignIn(c.email, "wrong")
	login.ExpectAlert()
	i.check(t, "sign-in refused")

	keys := c.signIn(v.Tab)
	i.check(t, "no keys")
	keys.Submit(strings.Repeat("long ", 20) + "!")
	keys.ExpectAlert()
	i.check(t, "a label refused")

	reveal := keys.Generate("production")
	i.check(t, "a key revealed")
	reveal.Done()
	reveal.ExpectGate()
	i.check(t, "a key not copied")
	reveal.CloseWithoutCopying()
	reveal.ExpectClosed()

	reveal = keys.Generate(strings.Repeat("W", 100))
	holdClipboard(t)
	reveal.Copy()
	reveal.ExpectCopied()
	i.check(t, "a key copied")
	reveal.Done()
	reveal.ExpectClosed()
	i.check(t, "a list of keys")
	i.resize(t, 360)
	keys.ExpectColumns() // a narrow layout must keep the roles of the table
	i.resize(t, 1280)

	keys.Row("production").Revoke().ExpectFocusOnCancel()
	i.check(t, "revocation to confirm")
	confirmation := pages.OpenKeys(v.Tab).Row("production").Revoke()
	confirmation.Confirm()
	keys.ExpectStatusSaying(`(?i)revoked`)
	i.check(t, "a key revoked")
}

func TestEveryOtherPageIsAccessibleAndFits(t *testing.T) {
	t.Parallel()
	c, v, _ := startSignedIn(t, sharedPortal(t), withoutMotion)
	v.allowStatus(http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusConflict)
	i := inspect(t, v.Tab)

	agents := pages.OpenAgents(v.Tab)
	i.check(t, "no agents")
	agents.Create(strings.Repeat("long ", 20) + "!")
	agents.ExpectAlert()
	i.check(t, "a name refused")
	agents.Create("Front desk")
	agents.ExpectListed("Front desk", "")
	c.newAgent(t, strings.Repeat("W", 100))
	agents = pages.OpenAgents(v.Tab)
	i.check(t, "a list of agents")
	agents.StartRemoval("Front desk")
	i.check(t, "removal of an agent to confirm")

	pages.OpenKeys(v.Tab).Add(strings.Repeat("W", 100))
	pages.OpenActivity(v.Tab)
	i.check(t, "activity")

	v.Open("/no-such-page")
	i.check(t, "not found")

	// This is the page for browsers without JavaScript. axe-core needs JavaScript to inspect
	// it.
	pages.OpenKeys(v.Tab).SubmitAsPage("as a page")
	v.ExpectHeading("API key generated")
	i.check(t, "a key revealed on a page")
	v.Reload()
	v.ExpectAlertSaying(`nas_\.\.\.`)
	i.check(t, "a form repeated")
}
