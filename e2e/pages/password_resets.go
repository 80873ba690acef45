package pages

// PasswordResets is the page at /password-resets, which asks for a link to set a new password.
type PasswordResets struct{ *Tab }

// ForgotPassword follows the link "Forgot password?".
func (l Login) ForgotPassword() PasswordResets {
	l.t.Helper()
	l.click(l.role("link", "Forgot password?"), "Forgot password?")
	l.ExpectPath("/password-resets")
	l.ExpectHeading("Reset your password")
	return PasswordResets{l.Tab}
}

// Submit asks for a link. The caller checks the result.
func (p PasswordResets) Submit(email string) {
	p.t.Helper()
	p.fill(p.role("textbox", "Email"), email, "the email")
	p.click(p.role("button", "Send link"), "Send link")
}

// PasswordReset is the page of a link to set a new password.
type PasswordReset struct{ *Tab }

// OpenPasswordReset opens the path of a link.
func OpenPasswordReset(b *Tab, path string) PasswordReset {
	b.t.Helper()
	b.Open(path)
	b.ExpectHeading("Set a new password")
	return PasswordReset{b}
}

// Submit submits the form with a new password. The caller checks the result.
func (p PasswordReset) Submit(password string) {
	p.t.Helper()
	p.fill(p.role("textbox", "New password"), password, "the new password")
	p.click(p.role("button", "Set password"), "Set password")
}
