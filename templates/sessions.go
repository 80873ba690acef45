package templates

// SignInPage is /login.
type SignInPage struct{ Form SignInForm }

func (SignInPage) screen() screen { return screen{file: "sessions/new.html", layout: layoutPlain} }

// SignInForm is the form of the sign-in page.
type SignInForm struct {
	Email   string // as it was typed
	Next    string // where to go afterwards
	Problem string // why signing in failed; never says which of the two was wrong
}

func (SignInForm) fragment() string { return "sign-in" }
