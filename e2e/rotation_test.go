package e2e

import (
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
	"portal/models/modelstest"
)

const (
	stepReplace = "Create replacement key"
	stepFirst   = "Wait for its first request"
	stepSilence = "Wait until the old key is no longer used"
)

// A whole rotation: replace the key, wait for its first use, revoke the old key.
func TestAKeyIsRotatedWithoutAnOutage(t *testing.T) {
	inBothModes(t, func(t *testing.T, p *process, mode profile) {
		c, v := startSignedIn(t, p, mode)
		agentID, before := c.newAgent(t, "Front desk"), c.newKey(t, "production")
		c.expectServed(t, before, agentID)

		rotation := pages.OpenKeys(v.Tab).Row("production").Rotate()
		rotation.ExpectCurrentStep(stepReplace)
		reveal := rotation.Replace()
		after := reveal.Secret()
		reveal.Leave()
		rotation = pages.ExpectRotation(v.Tab)
		if v.JavaScript {
			v.ExpectFocusInPage()
		}
		v.ExpectNowhere(after)
		rotation.ExpectCurrentStep(stepFirst)

		// The rotation continues at the step where the user left it.
		keys, today := pages.OpenKeys(v.Tab), time.Now().UTC().Format("2 Jan")
		keys.RowOf(after).Expect("link", "Replaces production, "+today)
		keys.RowOf(after).ExpectActions("Rename", "Restrictions")
		keys.RowOf(before).Follow("Replaced by production, " + today)
		rotation.ExpectStep(stepReplace, pages.Masked(after))
		v.Reload()
		rotation.ExpectStep(stepSilence, `Still in use`)

		c.expectServed(t, after, agentID)
		rotation.ExpectStep(stepFirst, `First request received`)
		rotation.ExpectCurrentStep(stepSilence)
		rotation.ExpectStep(stepSilence, `1 request with the old key, 1 with the new one`)

		rotation.Revoke()
		rotation.ExpectFocus("button", "Cancel")
		v.ExpectText(`(?i)still in use`)
		v.ExpectText(`(?i)can’t be undone`)
		rotation.Click("Cancel")
		rotation.ExpectFocus("button", "Revoke the old key")
		c.expectServed(t, before, agentID) // a rotation never revokes a key by itself
		rotation.Revoke()
		keys = rotation.Confirm()
		keys.ExpectStatus(`revoked`)
		c.expectRefused(t, before, agentID)
		c.expectServed(t, after, agentID)
		if n := keys.Count(); n != 1 {
			t.Errorf("%d keys are left, want only the replacement", n)
		}
	})
}

// The response to the revocation of the old key is lost. The page stays and says that the outcome
// is not certain.
func TestARotationSurvivesALostResponse(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	v.allow("net::ERR_FAILED|Failed to fetch")
	agentID, before := c.newAgent(t, "Front desk"), c.newKey(t, "production")
	rotation := pages.OpenKeys(v.Tab).Row("production").Rotate()
	rotation.Replace().Leave()
	rotation.Revoke()
	v.loseResponses(t, v.Path()+"/revocation", 1)
	v.withoutPolls(t, "**/rotation/progress*", func() {
		v.Press("Shift+Tab")
		v.Press("Enter")
		v.ExpectAlert(`may or may not`)
	})
	// The server did revoke the key, and the page finds that out by itself.
	pages.ExpectKeys(v.Tab).ExpectStatus(`was revoked`)
	c.expectRefused(t, before, agentID)
}

// A page may be left while a poll of it waits for its response. The browser then ends the request,
// which is no error.
func TestARotationIsLeftDuringAPoll(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	c.newKey(t, "production")
	rotation := pages.OpenKeys(v.Tab).Row("production").Rotate()
	rotation.Replace().Leave()
	path := v.Path()
	for _, leave := range []func(){v.Reload, v.Back, func() { v.Follow("Usage") }} {
		polled := make(chan struct{}, 1)
		modelstest.Must(t, v.Page.Route("**/rotation/progress*", func(playwright.Route) { polled <- struct{}{} }, 1))
		rotation.Open(path)
		<-polled
		leave()
	}
}
