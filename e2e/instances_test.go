package e2e

import (
	"testing"

	"portal/e2e/pages"
)

// Two instances share only the database. A change on one must apply to the next request on the
// other.
func TestTwoInstancesAgreeOnTheVeryNextRequest(t *testing.T) {
	t.Parallel()
	pair := sharedPair(t)
	here, there := pair[0], pair[1]
	c, v, keys := startSignedIn(t, here)
	agentID := c.newAgent(t, "Front desk")

	secret := keys.Add("shared")
	atHere, atThere := backend{site: here.URL, key: secret}, backend{site: there.URL, key: secret}
	atThere.expectServed(t, agentID)
	atHere.expectServed(t, agentID)

	// The session is valid on the other instance too.
	other := pages.NewTab(t, v.Page, there.URL, true, expectTimeout)
	keysThere := pages.OpenKeys(other)
	keysThere.Row("shared").Revoke().Confirm()
	keysThere.ExpectNone()
	atHere.expectRefused(t, agentID)
	atThere.expectRefused(t, agentID)

	keysThere.SignOut()
	v.Open("/api-keys")
	pages.ExpectLogin(v.Tab)
}
