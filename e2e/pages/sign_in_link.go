package pages

// SignInLink is the page of a sign-in link.
type SignInLink struct{ *Tab }

// OpenSignInLink opens the path of a link.
func OpenSignInLink(b *Tab, path string) SignInLink {
	b.t.Helper()
	b.Open(path)
	b.ExpectHeading("Sign in")
	return SignInLink{b}
}

// Continue uses the link.
func (l SignInLink) Continue() Keys {
	l.t.Helper()
	l.click(l.role("button", "Continue"), "Continue")
	return ExpectKeys(l.Tab)
}
