package pages

import (
	"strings"

	"github.com/playwright-community/playwright-go"
)

// SetUpAuthenticator opens the set-up of an authenticator app. It returns the secret for the app.
func (a Account) SetUpAuthenticator() (secret string) {
	a.t.Helper()
	a.click(a.role("button", "Set up authenticator app"), "Set up authenticator app")
	a.ExpectHeading("Set up authenticator app")
	a.must(a.expect.Locator(a.role("img", "QR code")).ToBeVisible(), "expect the QR code")
	text, err := a.Page.Locator("#authenticator-secret").TextContent()
	a.must(err, "read the secret")
	return strings.ReplaceAll(text, " ", "")
}

// TurnOnTwoSteps confirms the app with a code. It returns the recovery codes.
func (a Account) TurnOnTwoSteps(code string) (recovery []string) {
	a.t.Helper()
	a.fill(a.role("textbox", "Code"), code, "the code")
	a.click(a.role("button", "Turn on"), "Turn on")
	a.ExpectHeading("Recovery codes")
	recovery, err := a.role("list", "Recovery codes").GetByRole("listitem").AllInnerTexts()
	a.must(err, "read the recovery codes")
	a.click(a.role("link", "Done"), "Done")
	ExpectAccount(a.Tab)
	return recovery
}

// TurnOffTwoSteps turns two-step verification off.
func (a Account) TurnOffTwoSteps() {
	a.t.Helper()
	a.click(a.role("button", "Turn off"), "Turn off")
	a.must(a.expect.Locator(a.role("button", "Set up authenticator app")).ToBeVisible(), "expect two-step verification to be off")
}

// AddPasskey creates a passkey in the browser.
func (a Account) AddPasskey() {
	a.t.Helper()
	a.click(a.role("button", "Add a passkey"), "Add a passkey")
	a.must(a.expect.Locator(a.passkeys()).ToHaveCount(1), "expect one passkey")
}

// AddPasskeyAfterConfirming creates a passkey in the browser when the sign-in is old: with the
// password, and then with Enter on the button.
func (a Account) AddPasskeyAfterConfirming(password string) {
	a.t.Helper()
	add := a.role("button", "Add a passkey")
	a.click(add, "Add a passkey")
	a.ExpectHeading("Confirm it’s you")
	a.fill(a.role("textbox", "Current password"), password, "the password")
	a.click(a.role("button", "Continue"), "Continue")
	a.focused(add, "Add a passkey")
	a.Press("Enter")
	a.must(a.expect.Locator(a.passkeys()).ToHaveCount(1), "expect one passkey")
}

// RemovePasskey removes the only passkey.
func (a Account) RemovePasskey() {
	a.t.Helper()
	a.click(within(a.passkeys(), "button", "Remove"), "Remove")
	a.must(a.expect.Locator(a.passkeys()).ToHaveCount(0), "expect no passkey")
}

func (a Account) passkeys() playwright.Locator {
	return a.role("list", "Passkeys").GetByRole("listitem")
}

// SignInWithPasskey signs in with a passkey of the browser.
func (l Login) SignInWithPasskey() {
	l.t.Helper()
	l.click(l.role("button", "Sign in with a passkey"), "Sign in with a passkey")
}

// SecondStep is the second step of a sign-in.
type SecondStep struct{ *Tab }

// ExpectSecondStep waits until the tab shows the page.
func ExpectSecondStep(b *Tab) SecondStep {
	b.t.Helper()
	b.ExpectHeading("Two-step verification")
	return SecondStep{b}
}

// Verify submits a code. The caller checks the result.
func (s SecondStep) Verify(code string) {
	s.t.Helper()
	s.fill(s.role("textbox", "Code"), code, "the code")
	s.click(s.role("button", "Verify"), "Verify")
}
