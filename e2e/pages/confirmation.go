package pages

import (
	"regexp"

	"github.com/playwright-community/playwright-go"
)

// Confirmation is the row of a key about to be revoked.
type Confirmation struct{ row Row }

// ExpectWarning makes sure that the row says what revoking means.
func (c Confirmation) ExpectWarning() {
	k := c.row.keys
	k.t.Helper()
	for _, part := range []string{`(?i)at once|immediately`, `(?i)cannot be undone`} {
		k.visible(k.table().GetByText(regexp.MustCompile(part)).First(), "warning that matches %q", part)
	}
}

// ExpectFocusOnCancel waits until the harmless answer has the focus.
func (c Confirmation) ExpectFocusOnCancel() {
	c.row.keys.t.Helper()
	c.row.keys.focused(c.cancel(), "Cancel")
}

// Confirm revokes the key; what comes of it is for the caller to expect.
func (c Confirmation) Confirm() {
	c.row.keys.t.Helper()
	c.row.keys.click(c.confirm(), "Confirm revoke")
}

// Cancel leaves the key as it is.
func (c Confirmation) Cancel() {
	c.row.keys.t.Helper()
	c.row.keys.click(c.cancel(), "Cancel")
	c.expectGone()
}

// Escape leaves the key as it is, by the keyboard.
func (c Confirmation) Escape() {
	c.row.keys.t.Helper()
	c.row.keys.Press("Escape")
	c.expectGone()
}

// ExpectOpen makes sure that the row still asks.
func (c Confirmation) ExpectOpen() {
	c.row.keys.t.Helper()
	c.row.keys.visible(c.confirm(), "button Confirm revoke")
	c.row.keys.visible(c.cancel(), "button Cancel")
}

func (c Confirmation) expectGone() {
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
