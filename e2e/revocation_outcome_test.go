package e2e

import (
	"testing"

	"github.com/playwright-community/playwright-go"
)

func TestTheConfirmationTellsWhatWillBreak(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, _, keys := arrive(t, sharedPortal(t), mode)
		agentID := c.newAgent(t, "Front desk")
		secret := keys.Add("busy")
		keys.Add("idle")
		backend{site: c.at.URL, key: secret}.expectServed(t, agentID)
		confirmation := keys.Row("busy").Revoke()
		confirmation.ExpectSaying(`Still in use\. Used just now, 1 request in the last 24 hours`)
		confirmation.Cancel()
		keys.Row("idle").Revoke().ExpectSaying(`never used`)
	})
}

// The answer to a revocation is lost on its way. What has become of the key is
// found out, whichever it is.
func TestARevocationOfUnknownOutcomeIsFoundOut(t *testing.T) {
	t.Parallel()
	for name, arrives := range map[string]bool{"it was done": true, "it was not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, v, keys := arrive(t, sharedPortal(t))
			v.allow("ERR_FAILED|Failed to fetch")
			keys.Add("perhaps gone")
			keys.Add("beside it")
			confirmation := keys.Row("perhaps gone").Revoke()
			err := v.Page.Route("**/revocation", func(route playwright.Route) {
				if arrives {
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
			keys.ExpectAlertSaying(`(?i)not certain`)
			if arrives {
				keys.ExpectStatusSaying(`was revoked`)
				keys.ExpectNotListed("perhaps gone")
				keys.ExpectFocusInPage()
				return
			}
			confirmation.ExpectSaying(`Checked at .*: the key is still active`)
			confirmation.Confirm()
			keys.ExpectStatusSaying(`was revoked`)
			keys.ExpectNotListed("perhaps gone")
			keys.ExpectListed("beside it")
		})
	}
}
