package pages

import (
	"regexp"

	"github.com/playwright-community/playwright-go"
)

// Rotation is the page on which a new key takes the place of an old one.
type Rotation struct{ *Tab }

// Rotate goes to the rotation of the row's key.
func (r Row) Rotate() Rotation {
	r.keys.t.Helper()
	r.keys.click(within(r.root, "link", "Rotate"), "Rotate")
	return ExpectRotation(r.keys.Tab)
}

// ExpectRotation waits until the tab shows a rotation.
func ExpectRotation(b *Tab) Rotation {
	b.t.Helper()
	b.ExpectHeading("Rotate a key")
	return Rotation{b}
}

// Replace makes the replacement and returns its one-time reveal.
func (r Rotation) Replace() Reveal {
	r.t.Helper()
	r.click(r.role("button", "Make the replacement"), "Make the replacement")
	return ExpectReveal(r.Tab)
}

// ExpectNoReplacing makes sure that no replacement can be made, and that the page says why.
func (r Rotation) ExpectNoReplacing(why string) {
	r.t.Helper()
	r.ExpectTextSaying(why)
	r.hidden(r.role("button", "Make the replacement"), "button Make the replacement")
}

// ExpectStep waits until the step under this heading says what matches pattern. Without JavaScript nothing comes by
// itself: the visitor looks again.
func (r Rotation) ExpectStep(heading, pattern string) {
	r.t.Helper()
	if !r.JavaScript {
		r.Reload()
	}
	step := r.step(heading)
	r.visible(step.GetByText(regexp.MustCompile(pattern)).First(), "step %q saying %s", heading, pattern)
}

// ExpectCurrentStep makes sure that this step, and no other, is marked as the one to do.
func (r Rotation) ExpectCurrentStep(heading string) {
	r.t.Helper()
	r.must(r.expect.Locator(r.step(heading)).ToHaveAttribute("aria-current", "step"), "expect %q to be the current step", heading)
	r.must(r.expect.Locator(r.Page.Locator(`[aria-current="step"]`)).ToHaveCount(1), "expect one current step")
}

// Revoke asks to revoke the old key.
func (r Rotation) Revoke() {
	r.t.Helper()
	r.click(r.revoke(), "Revoke the old key")
	r.visible(r.role("button", "Confirm revoke"), "button Confirm revoke")
	r.settled()
}

// ExpectFocusOnCancel waits until the harmless answer has the focus.
func (r Rotation) ExpectFocusOnCancel() {
	r.t.Helper()
	r.focused(r.role("button", "Cancel"), "Cancel")
}

// Cancel leaves the old key as it is.
func (r Rotation) Cancel() {
	r.t.Helper()
	r.click(r.role("button", "Cancel"), "Cancel")
	r.visible(r.revoke(), "button Revoke the old key")
	r.settled()
}

// ExpectFocusOnRevoke waits until the focus is back where it was before asking.
func (r Rotation) ExpectFocusOnRevoke() {
	r.t.Helper()
	r.focused(r.revoke(), "Revoke the old key")
}

// Confirm revokes the old key, which leads to the list of keys.
func (r Rotation) Confirm() Keys {
	r.t.Helper()
	r.click(r.role("button", "Confirm revoke"), "Confirm revoke")
	return ExpectKeys(r.Tab)
}

func (r Rotation) revoke() playwright.Locator { return r.role("button", "Revoke the old key") }

func (r Rotation) step(heading string) playwright.Locator {
	return r.Page.GetByRole("listitem").Filter(playwright.LocatorFilterOptions{Has: r.role("heading", heading)})
}

// Leave leaves the reveal without a copy, to wherever it was opened from.
func (r Reveal) Leave() {
	r.t.Helper()
	r.Done()
	if r.JavaScript {
		r.ExpectGate()
		r.CloseWithoutCopying()
	}
	r.hidden(r.field(), "the key")
}

// RowOfKey is the row of the key with this value, which shows the end of it.
func (k Keys) RowOfKey(secret string) Row {
	masked := "nas_..." + secret[len(secret)-4:]
	return Row{keys: k, label: masked, root: k.table().GetByRole("row").Filter(playwright.LocatorFilterOptions{
		Has: k.role("cell", masked),
	})}
}
