package pages

// Login is the page at /login.
type Login struct{ *Tab }

// OpenLogin goes to the sign-in page.
func OpenLogin(b *Tab) Login {
	b.t.Helper()
	b.Open("/login")
	return ExpectLogin(b)
}

// ExpectLogin waits until the tab has been led to the sign-in page.
func ExpectLogin(b *Tab) Login {
	b.t.Helper()
	b.ExpectPath("/login")
	b.ExpectHeading("Sign in")
	return Login{b}
}

// SignIn sends the credentials; what they lead to is for the caller to expect.
func (l Login) SignIn(email, password string) {
	l.t.Helper()
	l.fill(l.role("textbox", "Email"), email, "the e-mail")
	l.fill(l.role("textbox", "Password"), password, "the password")
	l.click(l.role("button", "Sign in"), "Sign in")
}

// Email is what stands in the e-mail field.
func (l Login) Email() string {
	l.t.Helper()
	value, err := l.role("textbox", "Email").InputValue()
	l.must(err, "read the e-mail")
	return value
}

// Password is what stands in the password field.
func (l Login) Password() string {
	l.t.Helper()
	value, err := l.role("textbox", "Password").InputValue()
	l.must(err, "read the password")
	return value
}
