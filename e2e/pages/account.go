package pages

import "github.com/playwright-community/playwright-go"

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

func (a Account) sessions() playwright.Locator {
	return a.Page.GetByRole("main").GetByRole("list", playwright.LocatorGetByRoleOptions{Name: "Sessions"}).GetByRole("listitem")
}

func (a Account) session(text string) playwright.Locator {
	return a.sessions().Filter(playwright.LocatorFilterOptions{HasText: text})
}
