package e2e

import (
	"testing"

	"portal/e2e/pages"
)

func TestRevokingAsksForConfirmationAndCanBeCancelled(t *testing.T) {
	t.Parallel()
	_, _, keys := startSignedIn(t, sharedPortal(t))
	keys.Add("stays")
	keys.Add("other")
	row := keys.Row("stays")

	confirmation := row.Revoke()
	confirmation.ExpectWarning()
	confirmation.ExpectFocusOnCancel()
	confirmation.Escape()
	row.ExpectFocusOnRevoke()

	confirmation = row.Revoke()
	confirmation.ExpectFocusOnCancel()
	confirmation.Cancel()
	row.ExpectFocusOnRevoke()

	keys.Press("Enter") // on Revoke
	confirmation.ExpectFocusOnCancel()
	keys.Press("Enter") // on Cancel
	row.ExpectFocusOnRevoke()
	keys.ExpectListed("stays")
	keys.ExpectListed("other")
}

func TestARevokedKeyLeavesTheListWithAnAnnouncement(t *testing.T) {
	t.Parallel()
	_, v, keys := startSignedIn(t, sharedPortal(t))
	keys.Add("first")
	keys.Add("second")
	regions := v.LiveRegions()

	keys.Row("first").Revoke().Confirm()
	regions.ExpectAnnounced(`(?i)revoked`)
	keys.ExpectNotListed("first")
	keys.ExpectListed("second")
	keys.ExpectFocusInPage()

	keys.Row("second").Revoke().Confirm()
	regions.ExpectAnnounced(`(?i)revoked`)
	keys.ExpectNone()
	keys.ExpectFocusInPage()
}

// Two tabs can revoke the same key.
func TestRevokingAKeyRevokedElsewhereSaysSo(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		_, v, keys := startSignedIn(t, sharedPortal(t), mode)
		v.allow(`status of 4\d\d`)
		keys.Add("contested")
		confirmation := keys.Row("contested").Revoke()

		elsewhere := pages.OpenKeys(v.secondTab(t))
		elsewhere.Row("contested").Revoke().Confirm()
		elsewhere.ExpectNone()

		confirmation.Confirm()
		v.ExpectMessageSaying(`(?i)revoked`)
		pages.OpenKeys(v.Tab).ExpectNone()
	})
}

// The customer and the customer's backend see an operator's revocation.
func TestAnOperatorRevokesALeakedKey(t *testing.T) {
	t.Parallel()
	c, v, keys := startSignedIn(t, sharedPortal(t))
	agentID := c.newAgent(t, "Front desk")
	secret := keys.Add("leaked")
	server := backend{site: c.at.URL, key: secret}
	server.expectServed(t, agentID)

	if _, err := c.at.operator(secret+"\n", "key", "revoke", "--key", "-"); err != nil {
		t.Fatal(err)
	}
	server.expectRefused(t, agentID)
	pages.OpenKeys(v.Tab).ExpectNone()
	pages.OpenActivity(v.Tab).ExpectInOrder(`(?i)operator.*revoked|revoked.*operator`, `(?i)generated`)
}

func TestAnotherAccountsKeyIsNotFound(t *testing.T) {
	t.Parallel()
	p := sharedPortal(t)
	_, _, keys := startSignedIn(t, p)
	keys.Add("mine")
	path := keys.Row("mine").ConfirmationPath()

	_, stranger, _ := startSignedIn(t, p)
	stranger.allowStatus(404)
	stranger.Open(path)
	stranger.ExpectNowhere("mine")
	if n := stranger.count("GET", path, 404); n != 1 {
		t.Errorf("%s did not return 404 to another account:\n%s", path, stranger.transcript())
	}
}
