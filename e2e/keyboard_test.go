package e2e

import (
	"testing"

	"portal/e2e/pages"
)

// Every action of a key's life works without a mouse.
func TestTheJourneyWorksByKeyboard(t *testing.T) {
	t.Parallel()
	p := sharedPortal(t)
	c := p.newCustomer(t)
	v := visit(t, p.URL, withClipboard)

	pages.OpenLogin(v.Tab)
	v.ExpectFocus("textbox", "Email")
	v.TypeText(c.email)
	v.Press("Tab")
	v.TypeText(c.password)
	v.Press("Enter")
	keys := pages.ExpectKeys(v.Tab)

	v.TabTo("Tab", "link", "Skip to content")
	v.TabTo("Tab", "textbox", "Label")
	v.TypeText("typed")
	v.Press("Enter")
	reveal := pages.ExpectReveal(v.Tab)
	secret := reveal.Key()
	v.Press("Escape")
	reveal.ExpectGate()
	v.TabTo("Tab", "button", "Copy key")
	holdClipboard(t)
	v.Press("Enter")
	reveal.ExpectCopied()
	if got := v.Clipboard(); got != secret {
		t.Errorf("the clipboard holds %q, want the key", got)
	}
	v.TabTo("Tab", "button", "Done")
	v.Press("Space")
	reveal.ExpectClosed()
	v.ExpectFocusInPage()

	v.TabTo("Tab", "button", "Revoke")
	v.Press("Enter")
	v.ExpectFocus("button", "Cancel")
	v.TabTo("Shift+Tab", "button", "Confirm revoke")
	v.Press("Enter")
	keys.ExpectNone()
	v.ExpectFocusInPage()

	v.TabTo("Shift+Tab", "link", "Activity")
	v.Press("Enter")
	v.ExpectPath("/activity")
	v.TabTo("Tab", "button", "Sign out")
	v.Press("Enter")
	pages.ExpectLogin(v.Tab)
}
