package templates

// SignInPage is /login.
type SignInPage struct {
	Form         SignInForm
	ForgottenURL string // where users get a new password; empty: they ask their contact
	Provider     string // name of the OpenID Connect provider; empty: none
	ProviderPath string // of the link that signs in there
	Passkeys     bool   // browsers support passkeys at the address of the portal
	Support      string // URL of the support; may be empty
}

func (SignInPage) screen() screen { return screen{file: "sign_in/show.html", layout: layoutPlain} }

// SignInForm is the form of the sign-in page.
type SignInForm struct {
	Email   string // as submitted
	Next    string // path to open after the sign-in
	Problem string // why the sign-in failed; never says which field was wrong

	NoPasswords bool // sign-in with a password is turned off, so the form is empty
}

func (SignInForm) fragment() string { return "sign-in" }

// SignInLinkPage is the page of a sign-in link.
type SignInLinkPage struct {
	Email   string // of the user
	Action  string // path of the form
	Problem string // why the link does not work; empty if it does
}

func (SignInLinkPage) screen() screen { return screen{file: "sign_in/link.html", layout: layoutPlain} }

// SessionState is the alert of an open page whose session has ended. While the session lives, it is
// empty.
type SessionState struct {
	Ended bool
	Other string // email of another user who has signed in since, in another tab; empty: none
}

func (SessionState) fragment() string { return "session-state" }

// PasswordResetsPage asks for the email of a forgotten password.
type PasswordResetsPage struct{ Form ForgottenForm }

func (PasswordResetsPage) screen() screen {
	return screen{file: "password_resets/new.html", layout: layoutPlain}
}

// ForgottenForm is the form of that page. After a submission it shows a confirmation, which is the
// same for every email.
type ForgottenForm struct {
	Email   string // as submitted
	Problem string // why no link can be sent now
	Sent    bool
}

func (ForgottenForm) fragment() string { return "forgotten" }

// PasswordResetPage is the page of a link to set a new password.
type PasswordResetPage struct {
	Form    PasswordResetForm
	Problem string // why the link does not work; empty if it does
}

func (PasswordResetPage) screen() screen {
	return screen{file: "password_resets/show.html", layout: layoutPlain}
}

// PasswordResetForm is the form of that page.
type PasswordResetForm struct {
	Email   string // of the user
	Action  string // path of the form
	Problem string // what is wrong with the new password
}

func (PasswordResetForm) fragment() string { return "password-reset" }

// ReauthenticationPage asks for the password before a change, and then sends the form of the change
// again.
type ReauthenticationPage struct {
	Email      string // for the browser's password manager
	NoPassword bool   // the user has no password to enter
	Provider   string // the OpenID Connect provider; empty: none
	Problem    string // why the change was refused; empty when the page first asks
	Action     string // path of the form
	Fields     []HiddenField
	Cancel     string // path of the page to return to
	Section    Section
	What       string // the change, as it follows "to"
	Stays      bool   // with JavaScript, the result of the change replaces the page

	OperatorNotice string // as in [Frame]
}

// HiddenField is a field that the form sends without showing it.
type HiddenField struct{ Name, Value string }

func (p ReauthenticationPage) screen() screen {
	return screen{file: "account/reauthentication.html", section: p.Section}
}

func (ReauthenticationPage) fragment() string { return "reauthentication-main" }

// Own reports whether the change concerns only the user.
func (p ReauthenticationPage) Own() bool { return p.Section == SectionAccount }

// Notice returns "": the page has no notice.
func (ReauthenticationPage) Notice() string { return "" }
