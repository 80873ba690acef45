package e2e

import (
	"fmt"
	"slices"
	"testing"

	"portal/e2e/pages"
	"portal/models"
)

func TestTheMenuHasTheActionsOfAKey(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, v, keys := startSignedIn(t, sharedPortal(t), mode)
		agentID := c.newAgent(t, "Front desk")
		keys.Add("idle")
		secret := keys.Add("production")
		for range 2 {
			backend{site: c.at.URL, key: secret}.expectServed(t, agentID)
		}
		keys = pages.OpenKeys(v.Tab)
		keys.Row("production").ExpectRequests("2")
		keys.Row("idle").ExpectRequests("0")
		keys.SortByUsage("descending")
		keys.ExpectLabels("production", "idle")
		keys.SortByUsage("ascending")
		keys.ExpectLabels("idle", "production")
		keys.Row("production").ExpectActions("Rename", "Rotate", "Replace a lost key")

		reveal := keys.Row("production").Rotate().Replace()
		replacement := reveal.Key()
		reveal.Leave()
		keys = pages.OpenKeys(v.Tab)
		keys.RowOfKey(secret).ExpectBadge("Replaced by nas_..." + replacement[len(replacement)-4:])
		keys.RowOfKey(replacement).ExpectBadge("Replaces nas_..." + secret[len(secret)-4:])
		keys.RowOfKey(replacement).ExpectActions("Rename")
	})
}

func TestATakenLabelGetsAWarning(t *testing.T) {
	t.Parallel()
	_, _, keys := startSignedIn(t, sharedPortal(t))
	secret := keys.Add("Production")
	keys.ExpectLabelTaken("")
	keys.Type("production ")
	keys.ExpectLabelTaken(secret)
	keys.Type("production 2")
	keys.ExpectLabelTaken("")
	keys.Type("Production")
	keys.PressGenerate()
	reveal := pages.ExpectReveal(keys.Tab)
	reveal.ExpectTextSaying(`Another active key has the same label: nas_\.\.\.` + secret[len(secret)-4:])
	reveal.Abandon()
	keys.ExpectLabelTaken("")
	if got := keys.Label(); got != "" {
		t.Errorf("the field still has %q", got)
	}
}

func TestRevokedKeysAreListedWithRefusedRequests(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, v, keys := startSignedIn(t, sharedPortal(t), mode, withoutMotion)
		agentID := c.newAgent(t, "Front desk")
		secret := keys.Add("leaked")
		keys.Row("leaked").Revoke().Confirm()
		keys.ExpectNone()
		for range 3 {
			backend{site: c.at.URL, key: secret}.expectRefused(t, agentID)
		}
		revoked := pages.OpenKeys(v.Tab).OpenRevoked()
		revoked.ExpectListed("leaked", c.email, "3 requests")
		if v.JavaScript {
			i := inspect(t, v.Tab)
			i.check(t, "revoked keys")
			revoked.OpenChart("3 requests")
			i.check(t, "the chart of a revoked key")
			i.checkWidths(t, "the chart of a revoked key")
		} else {
			revoked.OpenChart("3 requests")
		}
		v.ExpectTextSaying(`3 refused`)
	})
}

func TestFilteringMovesNoColumns(t *testing.T) {
	t.Parallel()
	c, v, _ := startSignedIn(t, sharedPortal(t), withoutMotion)
	cookies := v.cookies(t)
	for n := range 12 {
		c.generate(t, cookies, fmt.Sprintf("key %d of several", n))
	}
	i := inspect(t, v.Tab)
	keys := pages.OpenKeys(v.Tab)
	for _, width := range []int{1280, 768} {
		i.resize(t, width)
		before := keys.ColumnPositions()
		keys.Filter("11")
		if after := keys.ColumnPositions(); !slices.Equal(before, after) {
			t.Errorf("%d px wide: columns move from %v to %v", width, before, after)
		}
		keys.Filter("none of them")
		keys.ExpectOneEmptyBox()
		keys.Filter("")
	}
}

// maxPhoneHeight is the limit for the height of a key on a phone, in pixels: half of what it was
// when each row was a card with a line for each cell.
const maxPhoneHeight = 94

func TestAHundredKeysAreCompactOnAPhone(t *testing.T) {
	t.Parallel()
	c, v, _ := startSignedIn(t, sharedPortal(t), withoutMotion)
	cookies := v.cookies(t)
	for n := range models.MaxActiveKeys {
		c.generate(t, cookies, fmt.Sprintf("Production backend %d", n))
	}
	inspect(t, v.Tab).resize(t, 360)
	keys := pages.OpenKeys(v.Tab)
	if n := keys.Count(); n != models.MaxActiveKeys {
		t.Fatalf("%d keys are listed", n)
	}
	if height := keys.HeightPerKey(); height > maxPhoneHeight {
		t.Errorf("a key is %.0f px tall, want at most %d", height, maxPhoneHeight)
	}
	keys.Row("Production backend 50").ExpectCellsShown()
}

func TestControlsAreLargeEnoughToTouch(t *testing.T) {
	t.Parallel()
	c, v, _ := startSignedIn(t, sharedPortal(t), withoutMotion)
	cookies := v.cookies(t)
	for n := range 12 {
		c.generate(t, cookies, fmt.Sprintf("key %d", n))
	}
	inspect(t, v.Tab).resize(t, 360)
	keys := pages.OpenKeys(v.Tab)
	keys.Row("key 1").Revoke()
	keys.Row("key 2").Rename()
	keys.Row("key 3").Usage()
	keys.Row("key 4").OpenMenu()
	if small := keys.Small(); len(small) > 0 {
		t.Errorf("lower than 44 px: %q", small)
	}
}
