package pages

import "github.com/playwright-community/playwright-go"

// Account is the page at /account.
type Account struct{ Frame }

// OpenAccount goes to the page of sessions and the password; the visitor is signed in.
func OpenAccount(b *Tab) Account {
	b.t.Helper()
	b.Open("/account")
	return ExpectAccount(b)
}

// ExpectAccount waits until the tab has been led to the page of the account.
func ExpectAccount(b *Tab) Account {
	b.t.Helper()
	b.ExpectPath("/account")
	b.ExpectHeading("Account")
	return Account{Frame{b}}
}

// FollowToAccount goes there by the link beside the name of the account.
func (f Frame) FollowToAccount() Account {
	f.t.Helper()
	f.click(f.role("link", "Account"), "the link Account")
	return ExpectAccount(f.Tab)
}

// ExpectSessions waits until so many sessions are listed, of which one is this.
func (a Account) ExpectSessions(count int) {
	a.t.Helper()
	a.must(a.expect.Locator(a.sessions()).ToHaveCount(count), "expect %d sessions", count)
	a.must(a.expect.Locator(a.session("This session")).ToHaveCount(1), "expect one to be this session")
	a.settled()
}

// EndSession ends the session on this device.
func (a Account) EndSession(device string) {
	a.t.Helper()
	a.click(within(a.session(device), "button", "End session"), "End session of "+device)
}

// EndAllOthers ends all sessions but this one.
func (a Account) EndAllOthers() {
	a.t.Helper()
	a.click(a.role("button", "End all other sessions"), "End all other sessions")
}

// ChangePassword asks for another password; what comes of it is for the caller to expect.
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
