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
	i.look(t, "sign-in")
	login.SignIn(c.email, "wrong")
	login.ExpectAlert()
	i.look(t, "sign-in refused")

	keys := c.signIn(v.Tab)
	i.look(t, "no keys")
	keys.Submit(strings.Repeat("long ", 20) + "!")
	keys.ExpectAlert()
	i.look(t, "a label refused")

	reveal := keys.Generate("production")
	i.look(t, "a key revealed")
	reveal.Done()
	reveal.ExpectGate()
	i.look(t, "a key about to be lost")
	reveal.CloseWithoutCopying()
	reveal.ExpectClosed()

	reveal = keys.Generate(strings.Repeat("W", 100))
	holdClipboard(t)
	reveal.Copy()
	reveal.ExpectCopied()
	i.look(t, "a key copied")
	reveal.Done()
	reveal.ExpectClosed()
	i.look(t, "a list of keys")
	i.resize(t, 360)
	keys.ExpectColumns() // a table stays one, however it is drawn
	i.resize(t, 1280)

	keys.Row("production").Revoke().ExpectFocusOnCancel()
	i.look(t, "asked to confirm")
	confirmation := pages.OpenKeys(v.Tab).Row("production").Revoke()
	confirmation.Confirm()
	keys.ExpectStatusSaying(`(?i)revoked`)
	i.look(t, "a key revoked")
}

func TestEveryOtherPageIsAccessibleAndFits(t *testing.T) {
	t.Parallel()
	c, v, _ := arrive(t, sharedPortal(t), withoutMotion)
	v.allowStatus(http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusConflict)
	i := inspect(t, v.Tab)

	agents := pages.OpenAgents(v.Tab)
	i.look(t, "no agents")
	agents.Create(strings.Repeat("long ", 20) + "!")
	agents.ExpectAlert()
	i.look(t, "a name refused")
	agents.Create("Front desk")
	agents.ExpectListed("Front desk", "")
	c.newAgent(t, strings.Repeat("W", 100))
	agents = pages.OpenAgents(v.Tab)
	i.look(t, "a list of agents")
	agents.AskToRemove("Front desk")
	i.look(t, "asked to remove an agent")

	pages.OpenKeys(v.Tab).Add(strings.Repeat("W", 100))
	pages.OpenActivity(v.Tab)
	i.look(t, "activity")

	v.Open("/no-such-page")
	i.look(t, "not found")

	// What a browser without scripts is shown, to a browser with them: axe-core is one.
	pages.OpenKeys(v.Tab).SubmitAsPage("as a page")
	v.ExpectHeading("API key generated")
	i.look(t, "a key revealed on a page")
	v.Reload()
	v.ExpectAlertSaying(`nas_\.\.\.`)
	i.look(t, "a form repeated")
}
