package pages

// Login is the page at /login.
type Login struct{ *Tab }

// OpenLogin opens the page.
func OpenLogin(b *Tab) Login {
	b.t.Helper()
	b.Open("/login")
	return ExpectLogin(b)
}

// ExpectLogin waits until the tab shows the page.
func ExpectLogin(b *Tab) Login {
	b.t.Helper()
	b.ExpectPath("/login")
	b.ExpectHeading("Sign in")
	return Login{b}
}

// SignIn submits the credentials. The caller checks the result.
func (l Login) SignIn(email, password string) {
	l.t.Helper()
	l.fill(l.role("textbox", "Email"), email, "the email")
	l.fill(l.role("textbox", "Password"), password, "the password")
	l.click(l.role("button", "Sign in"), "Sign in")
}

// Email returns the value of the Email field.
func (l Login) Email() string {
	l.t.Helper()
	value, err := l.role("textbox", "Email").InputValue()
	l.must(err, "read the email")
	return value
}

// Password returns the value of the Password field.
func (l Login) Password() string {
	l.t.Helper()
	value, err := l.role("textbox", "Password").InputValue()
	l.must(err, "read the password")
	return value
}
