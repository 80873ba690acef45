package pages

import (
	"strconv"
	"time"

	"github.com/playwright-community/playwright-go"
)

// Account is the page at /account.
type Account struct{ Frame }

// OpenAccount opens the page. The visitor must be signed in.
func OpenAccount(b *Tab) Account {
	b.t.Helper()
	b.Open("/account")
	return ExpectAccount(b)
}

// ExpectAccount waits until the tab shows the page.
func ExpectAccount(b *Tab) Account {
	b.t.Helper()
	b.ExpectPath("/account")
	b.ExpectHeading("Account")
	return Account{Frame{b}}
}

// FollowToAccount opens the page by the link with the account's name.
func (f Frame) FollowToAccount() Account {
	f.t.Helper()
	f.click(f.role("link", "Account"), "the link Account")
	return ExpectAccount(f.Tab)
}

// ExpectSessions waits until the page lists count sessions, one of them marked as this session.
func (a Account) ExpectSessions(count int) {
	a.t.Helper()
	a.must(a.expect.Locator(a.sessions()).ToHaveCount(count), "expect %d sessions", count)
	a.must(a.expect.Locator(a.session("This session")).ToHaveCount(1), "expect one to be this session")
	a.settled()
}

// EndSession ends the session on device.
func (a Account) EndSession(device string) {
	a.t.Helper()
	a.click(within(a.session(device), "button", "End session"), "End session of "+device)
}

// EndAllOthers ends all other sessions.
func (a Account) EndAllOthers() {
	a.t.Helper()
	a.click(a.role("button", "End all other sessions"), "End all other sessions")
	a.click(a.role("button", "Confirm sign-out"), "Confirm sign-out")
}

// ChangePassword submits a change of password. The caller checks the result.
func (a Account) ChangePassword(current, next string) {
	a.t.Helper()
	a.fill(a.role("textbox", "Current password"), current, "the current password")
	a.fill(a.role("textbox", "New password"), next, "the new password")
	a.click(a.role("button", "Change password"), "Change password")
}

// SetPassword submits a first password. The caller checks the result.
func (a Account) SetPassword(password string) {
	a.t.Helper()
	a.fill(a.role("textbox", "New password"), password, "the new password")
	a.click(a.role("button", "Set password"), "Set password")
}

// OpenEmailForm opens the form that changes the email.
func (a Account) OpenEmailForm() {
	a.t.Helper()
	a.click(a.Page.GetByText("Change email"), "Change email")
}

// ChangeEmail submits a change of email. The caller checks the result.
func (a Account) ChangeEmail(email, password string) {
	a.t.Helper()
	a.fill(a.role("textbox", "New email"), email, "the new email")
	a.fill(a.role("textbox", "Your password"), password, "the password")
	a.click(a.role("button", "Save email"), "Save email")
}

// EnterCurrentPassword fills in the current password in the form that changes it.
func (a Account) EnterCurrentPassword(password string) {
	a.t.Helper()
	a.fill(a.role("textbox", "Current password"), password, "the current password")
}

// ToggleCurrentPassword presses the button that shows or hides the current password.
func (a Account) ToggleCurrentPassword() {
	a.t.Helper()
	a.click(a.role("button", "Show current password"), "Show current password")
}

// ExpectCurrentPasswordShown waits until the current password is shown or hidden.
func (a Account) ExpectCurrentPasswordShown(shown bool) {
	a.t.Helper()
	kind := map[bool]string{true: "text", false: "password"}[shown]
	a.must(a.expect.Locator(a.role("textbox", "Current password")).ToHaveAttribute("type", kind), "expect the password shown: %t", shown)
	button := a.role("button", "Show current password")
	a.must(a.expect.Locator(button).ToHaveAttribute("aria-pressed", strconv.FormatBool(shown)), "expect the button pressed: %t", shown)
}

// SignedInAt returns when this session began: the text, the text on hover and the exact time.
func (a Account) SignedInAt() (text, hover string, at time.Time) {
	a.t.Helper()
	began := a.session("This session").GetByRole("time").First()
	text, err := began.InnerText()
	a.must(err, "read the time of sign-in")
	hover, err = began.GetAttribute("title")
	a.must(err, "read the time on hover")
	machine, err := began.GetAttribute("datetime")
	a.must(err, "read the exact time")
	at, err = time.Parse(time.RFC3339, machine)
	a.must(err, "parse the exact time")
	return text, hover, at
}

func (a Account) sessions() playwright.Locator {
	return a.Page.GetByRole("main").GetByRole("list", playwright.LocatorGetByRoleOptions{Name: "Sessions"}).GetByRole("listitem")
}

func (a Account) session(text string) playwright.Locator {
	return a.sessions().Filter(playwright.LocatorFilterOptions{HasText: text})
}
