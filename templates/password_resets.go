package templates

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
