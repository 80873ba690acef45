package pages

import "github.com/playwright-community/playwright-go"

// Frame is the navigation that every signed-in page shares.
type Frame struct{ *Tab }

// Follow opens a page by its link in the main navigation.
func (f Frame) Follow(name string) {
	f.t.Helper()
	f.click(f.link(name), "the link "+name)
	f.ExpectCurrent(name)
	f.settled()
}

// ExpectCurrent checks that the navigation marks only this link as the current page.
func (f Frame) ExpectCurrent(name string) {
	f.t.Helper()
	for _, link := range []string{"API Keys", "Agents", "Integrate", "Activity", "People"} {
		assertion := f.expect.Locator(f.link(link))
		if link == name {
			f.must(assertion.ToHaveAttribute("aria-current", "page"), "expect %s to be the current page", link)
		} else {
			f.must(assertion.Not().ToHaveAttribute("aria-current", "page"), "expect %s not to be the current page", link)
		}
	}
}

// SignOut signs out.
func (f Frame) SignOut() {
	f.t.Helper()
	f.click(f.role("button", "Sign out"), "Sign out")
	ExpectLogin(f.Tab)
}

func (f Frame) link(name string) playwright.Locator {
	return within(f.role("navigation", "Main"), "link", name)
}
