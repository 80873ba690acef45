package templates

import "github.com/google/uuid"

// AccountPage is /account.
type AccountPage struct {
	Sessions SessionList
	Password PasswordForm
}

func (AccountPage) screen() screen {
	return screen{file: "account/show.html", layout: layoutPortal, section: SectionAccount}
}

// SessionList is where the user is signed in, this session first.
type SessionList struct {
	Sessions []SessionItem
	Focused  bool // the list's heading takes the focus
}

func (SessionList) fragment() string { return "session-list" }

// Others counts the sessions beside this one.
func (l SessionList) Others() int {
	others := 0
	for _, session := range l.Sessions {
		if !session.Current {
			others++
		}
	}
	return others
}

// SessionItem is one session of the user.
type SessionItem struct {
	ID                        uuid.UUID
	Device                    string // in words: "Firefox on Linux"
	Current                   bool   // whoever looks is here by this one
	Began, Seen               Moment
	FirstAddress, LastAddress string // network addresses
}

// PasswordForm is the form that changes the password. What was typed is never
// sent back.
type PasswordForm struct {
	Email          string // for the browser's password manager
	CurrentProblem string // what is wrong with the current password
	NewProblem     string // what is wrong with the new one
	Problem        string // why it was not changed, both being as they may
	Focused        bool   // the form was sent: a field of it takes the focus
}

// NewFocused reports whether the new password takes the focus: it alone is wrong.
func (f PasswordForm) NewFocused() bool {
	return f.Focused && f.NewProblem != "" && f.CurrentProblem == ""
}

// CurrentFocused reports whether the current password takes the focus.
func (f PasswordForm) CurrentFocused() bool { return f.Focused && !f.NewFocused() }

func (PasswordForm) fragment() string { return "password-form" }

// PasswordChanged is what changes on the page of the account when the password
// does: the form is renewed, and other sessions have ended.
type PasswordChanged struct {
	Form PasswordForm
	List SessionList
}

func (PasswordChanged) fragment() string { return "password-changed" }
