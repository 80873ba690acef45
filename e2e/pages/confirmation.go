package pages

import (
	"regexp"

	"github.com/playwright-community/playwright-go"
)

// Confirmation is a key's row that asks to confirm its revocation.
type Confirmation struct{ row Row }

// ExpectWarning checks that the row explains the effect of a revocation.
func (c Confirmation) ExpectWarning() {
	k := c.row.keys
	k.t.Helper()
	for _, part := range []string{`(?i)at once|immediately`, `(?i)cannot be undone`} {
		k.visible(k.table().GetByText(regexp.MustCompile(part)).First(), "warning that matches %q", part)
	}
}

// ExpectCalls checks what the row says about open calls.
func (c Confirmation) ExpectCalls(text string) {
	k := c.row.keys
	k.t.Helper()
	k.visible(k.table().GetByText(text), "text %q", text)
}

// ExpectFocusOnCancel waits until Cancel has the focus.
func (c Confirmation) ExpectFocusOnCancel() {
	c.row.keys.t.Helper()
	c.row.keys.focused(c.cancel(), "Cancel")
}

// Confirm presses Confirm revoke. The caller checks the result.
func (c Confirmation) Confirm() {
	c.row.keys.t.Helper()
	c.row.keys.click(c.confirm(), "Confirm revoke")
}

// Cancel cancels the revocation with the button.
func (c Confirmation) Cancel() {
	c.row.keys.t.Helper()
	c.row.keys.click(c.cancel(), "Cancel")
	c.expectClosed()
}

// Escape cancels the revocation with the Escape key.
func (c Confirmation) Escape() {
	c.row.keys.t.Helper()
	c.row.keys.Press("Escape")
	c.expectClosed()
}

// ExpectOpen checks that the row still asks for confirmation.
func (c Confirmation) ExpectOpen() {
	c.row.keys.t.Helper()
	c.row.keys.visible(c.confirm(), "button Confirm revoke")
	c.row.keys.visible(c.cancel(), "button Cancel")
}

func (c Confirmation) expectClosed() {
	c.row.keys.t.Helper()
	c.row.keys.hidden(c.confirm(), "button Confirm revoke")
	c.row.keys.visible(c.row.revoke(), "button Revoke of %q", c.row.label)
	c.row.keys.settled()
}

func (c Confirmation) confirm() playwright.Locator {
	return within(c.row.keys.table(), "button", "Confirm revoke")
}

func (c Confirmation) cancel() playwright.Locator {
	return within(c.row.keys.table(), "button", "Cancel")
}
