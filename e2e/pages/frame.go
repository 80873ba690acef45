package pages

import "github.com/playwright-community/playwright-go"

// Frame is what every signed-in page has around its content.
type Frame struct{ *Tab }

// Follow goes to a page by its link in the main navigation.
func (f Frame) Follow(name string) {
	f.t.Helper()
	f.click(f.link(name), "the link "+name)
	f.ExpectCurrent(name)
	f.settled()
}

// ExpectCurrent makes sure that the navigation marks this link, and no other, as the current page.
func (f Frame) ExpectCurrent(name string) {
	f.t.Helper()
	for _, link := range []string{"API Keys", "Agents", "Activity"} {
		assertion := f.expect.Locator(f.link(link))
		if link == name {
			f.must(assertion.ToHaveAttribute("aria-current", "page"), "expect %s to be the current page", link)
		} else {
			f.must(assertion.Not().ToHaveAttribute("aria-current", "page"), "expect %s not to be the current page", link)
		}
	}
}

// SignOut leaves the portal.
func (f Frame) SignOut() {
	f.t.Helper()
	f.click(f.role("button", "Sign out"), "Sign out")
	ExpectLogin(f.Tab)
}

func (f Frame) link(name string) playwright.Locator {
	return within(f.role("navigation", "Main"), "link", name)
}
