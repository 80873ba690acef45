package templates

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
}

// HiddenField is a field that the form sends without showing it.
type HiddenField struct{ Name, Value string }

func (p ReauthenticationPage) screen() screen {
	return screen{file: "account/reauthentication.html", section: p.Section}
}

func (ReauthenticationPage) fragment() string { return "reauthentication-main" }

// Notice returns "": the page has no notice.
func (ReauthenticationPage) Notice() string { return "" }
