package pages

import (
	"regexp"

	"github.com/playwright-community/playwright-go"
)

// Rotation is the page that replaces an old key with a new one.
type Rotation struct{ *Tab }

// Rotate opens the rotation of the row's key.
func (r Row) Rotate() Rotation {
	r.keys.t.Helper()
	r.OpenMenu()
	r.keys.click(within(r.root, "link", "Rotate"), "Rotate")
	return ExpectRotation(r.keys.Tab)
}

// ExpectRotation waits until the tab shows the page.
func ExpectRotation(b *Tab) Rotation {
	b.t.Helper()
	b.ExpectHeading("Rotate a key")
	return Rotation{b}
}

// Replace generates the replacement and returns its one-time reveal.
func (r Rotation) Replace() Reveal {
	r.t.Helper()
	r.click(r.role("button", "Create replacement key"), "Create replacement key")
	return ExpectReveal(r.Tab)
}

// ExpectCannotReplace checks that the page offers no replacement and shows a text that matches
// reason.
func (r Rotation) ExpectCannotReplace(reason string) {
	r.t.Helper()
	r.ExpectTextSaying(reason)
	r.hidden(r.role("button", "Create replacement key"), "button Create replacement key")
}

// ExpectStep waits until the text of the step under this heading matches pattern. Without
// JavaScript it reloads the page first, because the page does not refresh itself.
func (r Rotation) ExpectStep(heading, pattern string) {
	r.t.Helper()
	if !r.JavaScript {
		r.Reload()
	}
	step := r.step(heading)
	r.visible(step.GetByText(regexp.MustCompile(pattern)).First(), "step %q saying %s", heading, pattern)
}

// ExpectCurrentStep checks that only this step is marked as the current one.
func (r Rotation) ExpectCurrentStep(heading string) {
	r.t.Helper()
	r.must(r.expect.Locator(r.step(heading)).ToHaveAttribute("aria-current", "step"), "expect %q to be the current step", heading)
	r.must(r.expect.Locator(r.Page.Locator(`[aria-current="step"]`)).ToHaveCount(1), "expect one current step")
}

// Revoke presses Revoke the old key and waits for the confirmation.
func (r Rotation) Revoke() {
	r.t.Helper()
	r.click(r.revoke(), "Revoke the old key")
	r.visible(r.role("button", "Confirm revoke"), "button Confirm revoke")
	r.settled()
}

// ExpectFocusOnCancel waits until Cancel has the focus.
func (r Rotation) ExpectFocusOnCancel() {
	r.t.Helper()
	r.focused(r.role("button", "Cancel"), "Cancel")
}

// Cancel cancels the revocation of the old key.
func (r Rotation) Cancel() {
	r.t.Helper()
	r.click(r.role("button", "Cancel"), "Cancel")
	r.visible(r.revoke(), "button Revoke the old key")
	r.settled()
}

// ExpectFocusOnRevoke waits until the button that revokes the old key has the focus.
func (r Rotation) ExpectFocusOnRevoke() {
	r.t.Helper()
	r.focused(r.revoke(), "Revoke the old key")
}

// Confirm confirms the revocation and waits for the list of keys.
func (r Rotation) Confirm() Keys {
	r.t.Helper()
	r.click(r.role("button", "Confirm revoke"), "Confirm revoke")
	return ExpectKeys(r.Tab)
}

func (r Rotation) revoke() playwright.Locator { return r.role("button", "Revoke the old key") }

func (r Rotation) step(heading string) playwright.Locator {
	return r.Page.GetByRole("listitem").Filter(playwright.LocatorFilterOptions{Has: r.role("heading", heading)})
}

// RowOfKey returns the row of the key with this value. The row shows its last characters.
func (k Keys) RowOfKey(secret string) Row {
	masked := "nas_..." + secret[len(secret)-4:]
	return Row{keys: k, label: masked, root: k.table().GetByRole("row").Filter(playwright.LocatorFilterOptions{
		Has: k.role("cell", masked),
	})}
}
