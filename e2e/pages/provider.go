package pages

import "regexp"

// atProvider matches the URLs of the OpenID Connect provider's own pages.
var atProvider = regexp.MustCompile(`/interaction/`)

// Provider is a sign-in page of the OpenID Connect provider of the tests.
type Provider struct{ *Tab }

// FollowToProvider opens the provider's sign-in page by the link on the portal's.
func (l Login) FollowToProvider(name string) Provider {
	l.t.Helper()
	l.click(l.role("link", "Sign in with "+name), "Sign in with "+name)
	return ExpectProvider(l.Tab)
}

// ExpectProvider waits until the tab shows a page of the provider.
func ExpectProvider(b *Tab) Provider {
	b.t.Helper()
	b.must(b.expect.Page(b.Page).ToHaveURL(atProvider), "expect a page of the provider")
	return Provider{b}
}

// SignIn signs in under this name and allows the portal to know the email.
func (p Provider) SignIn(name string) {
	p.t.Helper()
	p.fill(p.Page.GetByPlaceholder("Enter any login"), name, "the name at the provider")
	p.fill(p.Page.GetByPlaceholder("and password"), "any", "the password at the provider")
	p.click(p.role("button", "Sign-in"), "Sign-in")
	p.click(p.role("button", "Continue"), "Continue at the provider")
}

// Connect presses the button that connects the provider. It leads to the provider's page, or back
// to the account page if the browser has a session at the provider.
func (a Account) Connect(name string) {
	a.t.Helper()
	a.click(a.role("button", "Connect "+name), "Connect "+name)
}

// Disconnect disconnects the provider. The caller checks the result.
func (a Account) Disconnect(name string) {
	a.t.Helper()
	a.click(a.role("button", "Disconnect "+name), "Disconnect "+name)
}

// ExpectConnected waits until the page shows that the provider is connected, or not.
func (a Account) ExpectConnected(name string, connected bool) {
	a.t.Helper()
	button := "Connect " + name
	if connected {
		button = "Disconnect " + name
	}
	a.must(a.expect.Locator(a.role("button", button)).ToBeVisible(), "expect the button %s", button)
}
