package e2e

import (
	"slices"
	"strings"
	"testing"

	"portal/e2e/pages"
)

func TestTheKeyListFitsEveryWidth(t *testing.T) {
	t.Parallel()
	c, v, _ := startSignedIn(t, sharedPortal(t), withoutMotion)
	i := inspect(t, v.Tab)
	cookies := v.cookies(t)
	unbroken := strings.Repeat("W", 100)
	for _, label := range []string{"CI", "Production backend", "to revoke", "renamed", strings.Repeat("long ", 19) + "label", unbroken} {
		c.generate(t, cookies, label)
	}
	keys := pages.OpenKeys(v.Tab)
	i.checkWidths(t, "a list of keys")

	keys.Row(unbroken).Usage()
	keys.Row("to revoke").Revoke()
	keys.Row("renamed").Rename()
	i.checkWidths(t, "open rows")

	rotation := pages.OpenKeys(v.Tab).Row(unbroken).Rotate()
	i.checkWidths(t, "a rotation")
	rotation.Replace().Leave()
	i.checkWidths(t, "a started rotation")
}

func TestColumnsDoNotMoveWhenARowOpens(t *testing.T) {
	t.Parallel()
	_, v, keys := startSignedIn(t, sharedPortal(t), withoutMotion)
	keys.Add("the only one")
	i := inspect(t, v.Tab)
	for _, width := range []int{1280, 1100, 768} {
		i.resize(t, width)
		before := keys.ColumnPositions()
		rename := keys.Row("the only one").Rename()
		rename.ExpectButtonsOnOneLine()
		if after := keys.ColumnPositions(); !slices.Equal(before, after) {
			t.Errorf("%d px wide: columns move from %v to %v", width, before, after)
		}
		rename.Cancel()
	}
}
