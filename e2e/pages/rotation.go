package pages

// Rotation is the page that replaces an old key with a new one.
type Rotation struct{ *Tab }

// ExpectRotation waits until the tab shows the page.
func ExpectRotation(b *Tab) Rotation {
	b.ExpectHeading("Rotate a key")
	return Rotation{b}
}

// Replace generates the replacement and returns its one-time reveal.
func (r Rotation) Replace() Reveal {
	r.Click("Create replacement key")
	return ExpectReveal(r.Tab)
}

// ExpectStep waits until the text of the step under this heading matches pattern. Without
// JavaScript it reloads the page first, because the page does not refresh itself.
func (r Rotation) ExpectStep(heading, pattern string) {
	if !r.JavaScript {
		r.Reload()
	}
	r.Row(heading).ExpectSaying(pattern)
}

// ExpectCurrentStep checks that only this step is marked as the current one.
func (r Rotation) ExpectCurrentStep(heading string) {
	r.must(r.expect.Locator(r.Row(heading).root).ToHaveAttribute("aria-current", "step"), "expect the step %q", heading)
	r.must(r.expect.Locator(r.Page.Locator(`[aria-current="step"]`)).ToHaveCount(1), "expect one current step")
}

// Revoke presses Revoke the old key and waits for the confirmation.
func (r Rotation) Revoke() {
	r.Click("Revoke the old key")
	r.Expect("button", "Confirm revoke")
	r.settled()
}

// Confirm confirms the revocation and waits for the list of keys.
func (r Rotation) Confirm() Keys {
	r.Click("Confirm revoke")
	return ExpectKeys(r.Tab)
}
