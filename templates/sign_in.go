package templates

// SignInPage is /login.
type SignInPage struct {
	Form         SignInForm
	ForgottenURL string // where users get a new password; empty: they ask their contact
	Provider     string // name of the OpenID Connect provider; empty: none
	ProviderPath string // of the link that signs in there
	Passkeys     bool   // browsers support passkeys at the address of the portal
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
type SessionState struct{ Ended bool }

func (SessionState) fragment() string { return "session-state" }
