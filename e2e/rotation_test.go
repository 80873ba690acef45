package e2e

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/google/uuid"

	"portal/e2e/pages"
)

const (
	stepReplace = "Create replacement key"
	stepFirst   = "Wait for its first request"
	stepSilence = "Wait until the old key is no longer used"
	stepRevoke  = "Revoke the old key"
)

// A whole rotation: replace the key, wait for its first use, revoke the old key.
func TestAKeyIsRotatedWithoutAnOutage(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		p := sharedPortal(t)
		c, v, keys := startSignedIn(t, p, mode)
		agentID := c.newAgent(t, "Front desk")
		before := backend{site: p.URL, key: keys.Add("production")}
		before.expectServed(t, agentID)

		keys = pages.OpenKeys(v.Tab)
		rotation := keys.Row("production").Rotate()
		rotation.ExpectCurrentStep(stepReplace)
		reveal := rotation.Replace()
		after := backend{site: p.URL, key: reveal.Key()}
		reveal.Leave()
		rotation = pages.ExpectRotation(v.Tab)
		if v.JavaScript {
			v.ExpectFocusInPage()
		}
		v.ExpectNowhere(after.key)
		rotation.ExpectCurrentStep(stepFirst)

		// The rotation continues at the step where the user left it.
		rotation = pages.OpenKeys(v.Tab).RowOfKey(before.key).Rotate()
		rotation.ExpectStep(stepReplace, `nas_\.\.\.`+after.key[len(after.key)-4:])
		v.Reload()
		rotation.ExpectStep(stepSilence, `Still in use`)

		after.expectServed(t, agentID)
		rotation.ExpectStep(stepFirst, `First request received`)
		rotation.ExpectCurrentStep(stepSilence)
		rotation.ExpectStep(stepSilence, `1 with the old key, 1 with the new one`)

		rotation.Revoke()
		rotation.ExpectFocusOnCancel()
		v.ExpectTextSaying(`(?i)still in use`)
		v.ExpectTextSaying(`(?i)cannot be undone`)
		rotation.Cancel()
		rotation.ExpectFocusOnRevoke()
		before.expectServed(t, agentID) // a rotation never revokes a key by itself
		rotation.Revoke()
		keys = rotation.Confirm()
		keys.ExpectStatusSaying(`(?i)revoked`)
		before.expectRefused(t, agentID)
		after.expectServed(t, agentID)
		if n := keys.Count(); n != 1 {
			t.Errorf("%d keys are left, want only the replacement", n)
		}
	})
}

func TestARotationNeedsRoomForOneMoreKey(t *testing.T) {
	t.Parallel()
	_, v, _ := startSignedIn(t, sharedPortal(t))
	cookies := v.cookies(t)
	for n := range 100 {
		form := url.Values{"label": {"key " + pad(int64(n))}, "form_id": {uuid.NewString()}}
		if status, _ := postForm(t, v.Site+"/api-keys", form, cookies); status != http.StatusOK {
			t.Fatalf("generating a key by HTTP returned %d", status)
		}
	}
	keys := pages.OpenKeys(v.Tab)
	keys.Row("key 042").Rotate().ExpectCannotReplace(`100 active keys`)
	keys = pages.OpenKeys(v.Tab)
	keys.Row("key 007").Revoke().Confirm()
	keys.ExpectNotListed("key 007")
	keys.Row("key 042").Rotate().Replace().Leave()
	pages.ExpectRotation(v.Tab).ExpectCurrentStep(stepFirst)
}

// The response to the revocation of the old key is lost. The page stays and says that the outcome
// is not certain.
func TestARotationSurvivesALostResponse(t *testing.T) {
	t.Parallel()
	c, v, keys := startSignedIn(t, sharedPortal(t))
	v.allow("net::ERR_FAILED|Failed to fetch")
	agentID := c.newAgent(t, "Front desk")
	before := backend{site: v.Site, key: keys.Add("production")}
	rotation := keys.Row("production").Rotate()
	rotation.Replace().Leave()
	path := v.Path()
	rotation.Revoke()
	v.dropResponses(t, path+"/revocation")
	v.Press("Shift+Tab")
	v.Press("Enter")
	v.ExpectAlertSaying(`may or may not`)
	v.deliverResponses(t)
	// The server did revoke the key, and the page finds that out by itself.
	pages.ExpectKeys(v.Tab).ExpectStatusSaying(`was revoked`)
	before.expectRefused(t, agentID)
}

func TestEveryStateOfARotationIsAccessibleAndFits(t *testing.T) {
	t.Parallel()
	c, v, keys := startSignedIn(t, sharedPortal(t), withoutMotion)
	agentID := c.newAgent(t, "Front desk")
	i := inspect(t, v.Tab)
	before := backend{site: v.Site, key: keys.Add("production")}
	before.expectServed(t, agentID)
	reveal := pages.OpenKeys(v.Tab).Generate("another")
	backend{site: v.Site, key: reveal.Key()}.expectServed(t, agentID)
	reveal.ExpectFirstRequestReceived()
	i.check(t, "a key revealed and used")
	reveal.Abandon()

	rotation := pages.OpenKeys(v.Tab).Row("production").Rotate()
	i.check(t, "a rotation not started")
	reveal = rotation.Replace()
	after := backend{site: v.Site, key: reveal.Key()}
	i.check(t, "a replacement revealed")
	reveal.Leave()
	i.check(t, "a replacement not used yet")
	after.expectServed(t, agentID)
	rotation.ExpectStep(stepFirst, `First request received`)
	i.check(t, "an old key still in use")
	rotation.Revoke()
	i.check(t, "an old key to revoke")
}
