package e2e

import (
	"testing"

	"github.com/playwright-community/playwright-go"
)

func TestTheConfirmationShowsWhetherTheKeyIsInUse(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, _, keys := startSignedIn(t, sharedPortal(t), mode)
		agentID := c.newAgent(t, "Front desk")
		secret := keys.Add("busy")
		keys.Add("idle")
		backend{site: c.at.URL, key: secret}.expectServed(t, agentID)
		confirmation := keys.Row("busy").Revoke()
		confirmation.ExpectSaying(`Still in use\. Used just now, 1 request in the last 24 hours`)
		confirmation.Cancel()
		keys.Row("idle").Revoke().ExpectSaying(`never been used`)
	})
}

// The response to a revocation is lost. The page then checks whether the key was revoked, and says
// so.
func TestThePageChecksTheOutcomeOfALostRevocation(t *testing.T) {
	t.Parallel()
	for name, revoked := range map[string]bool{"the key was revoked": true, "the key was not revoked": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, v, keys := startSignedIn(t, sharedPortal(t))
			v.allow("ERR_FAILED|Failed to fetch")
			keys.Add("uncertain")
			keys.Add("other")
			confirmation := keys.Row("uncertain").Revoke()
			err := v.Page.Route("**/revocation", func(route playwright.Route) {
				if revoked {
					if _, err := route.Fetch(); err != nil {
						t.Error(err)
					}
				}
				_ = route.Abort()
			}, 1)
			if err != nil {
				t.Fatal(err)
			}
			confirmation.Confirm()
			keys.ExpectAlertSaying(`(?i)may or may not`)
			if revoked {
				keys.ExpectStatusSaying(`was revoked`)
				keys.ExpectNotListed("uncertain")
				keys.ExpectFocusInPage()
				return
			}
			confirmation.ExpectSaying(`Checked at .*: the key is still active`)
			confirmation.Confirm()
			keys.ExpectStatusSaying(`was revoked`)
			keys.ExpectNotListed("uncertain")
			keys.ExpectListed("other")
		})
	}
}
