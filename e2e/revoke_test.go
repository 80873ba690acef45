package e2e

import (
	"testing"

	"portal/e2e/pages"
)

func TestRevokingIsAskedTwiceAndCanBeLeftByKeyboard(t *testing.T) {
	t.Parallel()
	_, _, keys := arrive(t, sharedPortal(t))
	keys.Add("stays")
	keys.Add("beside it")
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
	keys.ExpectListed("beside it")
}

func TestARevokedKeyLeavesTheListAndItIsSaid(t *testing.T) {
	t.Parallel()
	_, v, keys := arrive(t, sharedPortal(t))
	keys.Add("first")
	keys.Add("second")
	regions := v.LiveRegions()

	keys.Row("first").Revoke().Confirm()
	regions.ExpectSaid(`(?i)revoked`)
	keys.ExpectNotListed("first")
	keys.ExpectListed("second")
	keys.ExpectFocusInPage()

	keys.Row("second").Revoke().Confirm()
	regions.ExpectSaid(`(?i)revoked`)
	keys.ExpectNone()
	keys.ExpectFocusInPage()
}

// Two people, or two tabs, may revoke the same key.
func TestAKeyRevokedElsewhereIsSaidToBeGone(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		_, v, keys := arrive(t, sharedPortal(t), mode)
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

// What an operator does from outside is seen by the customer and by the customer's backend.
func TestAnOperatorsRevocationEndsALeakedKey(t *testing.T) {
	t.Parallel()
	c, v, keys := arrive(t, sharedPortal(t))
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
	_, _, keys := arrive(t, p)
	keys.Add("mine")
	path := keys.Row("mine").ConfirmationPath()

	_, stranger, _ := arrive(t, p)
	stranger.allowStatus(404)
	stranger.Open(path)
	stranger.ExpectNowhere("mine")
	if n := stranger.count("GET", path, 404); n != 1 {
		t.Errorf("%s answered a stranger without 404:\n%s", path, stranger.transcript())
	}
}
