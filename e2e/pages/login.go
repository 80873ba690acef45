package pages

import "regexp"

// Login is the page at /login.
type Login struct{ *Tab }

// OpenLogin opens the page.
func OpenLogin(b *Tab) Login {
	b.Open("/login")
	return ExpectLogin(b)
}

// ExpectLogin waits until the tab shows the page.
func ExpectLogin(b *Tab) Login {
	b.expectPage("/login", "Sign in")
	return Login{b}
}

// SignIn submits the credentials.
func (l Login) SignIn(email, password string) {
	l.Fill("Email", email)
	l.Fill("Password", password)
	l.Click("Sign in")
}

// ForgotPassword follows the link "Forgot password?".
func (l Login) ForgotPassword() {
	l.Follow("Forgot password?")
	l.expectPage("/password-resets", "Reset your password")
}

// RequestPasswordReset asks for a link to set a new password.
func RequestPasswordReset(b *Tab, email string) {
	b.Fill("Email", email)
	b.Click("Send link")
}

// OpenPasswordReset opens the path of a link to set a new password.
func OpenPasswordReset(b *Tab, path string) { b.open(path, "Set a new password") }

// ResetPassword submits the form of such a link.
func ResetPassword(b *Tab, password string) {
	b.Fill("New password", password)
	b.Click("Set password")
}

// OpenSignInLink opens the path of a link that signs in.
func OpenSignInLink(b *Tab, path string) { b.open(path, "Sign in") }

// UseSignInLink uses the link.
func UseSignInLink(b *Tab) Keys {
	b.Click("Continue")
	return ExpectKeys(b)
}

// VerifySecondStep submits a code in the second step of a sign-in.
func VerifySecondStep(b *Tab, code string) {
	b.ExpectHeading("Two-step verification")
	b.Fill("Code", code)
	b.Click("Verify")
}

// SignInAtProvider signs in at the OpenID Connect provider of the tests under this name, and allows
// the portal to know the email.
func SignInAtProvider(b *Tab, name string) {
	b.must(b.expect.Page(b.Page).ToHaveURL(regexp.MustCompile(`/interaction/`)), "expect a page of the provider")
	b.must(b.Page.GetByPlaceholder("Enter any login").Fill(name), "fill in the name at the provider")
	b.must(b.Page.GetByPlaceholder("and password").Fill(name), "fill in the password at the provider")
	b.Press("Enter")
	b.Click("Continue")
}
