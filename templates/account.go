package templates

import (
	"strings"

	"github.com/google/uuid"
)

// AccountPage is /account.
type AccountPage struct {
	Email    EmailForm
	Sessions SessionList
	Password PasswordForm
	Factors  Factors

	NoPasswords bool // sign-in with a password is turned off, so there is no form for one
	Identity    IdentityForm
}

func (AccountPage) screen() screen { return screen{file: "account/show.html", section: SectionAccount} }

// SessionList lists the sessions of the user, the current one first.
type SessionList struct {
	Sessions   []SessionItem
	Confirming bool // asks whether to end all other sessions
	Focused    bool // the heading takes the focus
	EndFocused bool // the button that ends all other sessions takes the focus
}

func (SessionList) fragment() string { return "session-list" }

// Others counts the sessions except the current one.
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
	Device                    string // such as "Firefox on Linux"
	Current                   bool   // the session of this request
	Began, Seen               Moment
	FirstAddress, LastAddress string // network addresses
}

// Phone reports whether the device is a phone or a tablet.
func (s SessionItem) Phone() bool {
	system := s.Device[strings.LastIndexByte(s.Device, ' ')+1:]
	return system == "iPhone" || system == "iPad" || system == "Android"
}

// EmailForm shows the user's email and asks for a link to change it. It never contains the
// submitted password.
type EmailForm struct {
	Email           string // the current one
	Pending         string // waits for its confirmation; empty: none
	Open            bool   // the form is visible without a click
	New             string // as submitted
	NewProblem      string // the error of the new email
	NoPassword      bool   // the user has no password to enter
	PasswordProblem string // the error of the password
	Problem         string // an error that concerns neither field
	Asked           bool   // the heading takes the focus after a link was sent
	NoMail          bool   // the portal sends no mail, so only an operator changes the email
	Support         string // URL of the support; may be empty
}

func (EmailForm) fragment() string { return "email-form" }

// NewFocused reports whether the new email takes the focus, because it is invalid or there is no
// password field.
func (f EmailForm) NewFocused() bool { return f.NewProblem != "" || f.NoPassword && f.Problem != "" }

// PasswordFocused reports whether the password takes the focus.
func (f EmailForm) PasswordFocused() bool {
	return !f.NewFocused() && (f.PasswordProblem != "" || f.Problem != "")
}

// EmailChangePage is the page of a link that confirms a new email.
type EmailChangePage struct {
	Email   string // the new one
	Action  string // path of the form
	Problem string // why the link does not work; empty if it does
	Changed bool   // the link has been used now
}

func (EmailChangePage) screen() screen {
	return screen{file: "account/email_change.html", layout: layoutPlain}
}

// PasswordForm is the form that changes the password, or sets the first one, without the submitted
// passwords.
type PasswordForm struct {
	Email          string // for the browser's password manager
	NoPassword     bool   // the user sets the first password
	CurrentProblem string // the error of the current password
	NewProblem     string // the error of the new password
	Problem        string // an error that concerns neither field
	Focused        bool   // the form was submitted, so one of its fields takes the focus
}

// NewFocused reports whether the new password takes the focus, because it is the only field or the
// only invalid one.
func (f PasswordForm) NewFocused() bool {
	return f.Focused && (f.NoPassword || f.NewProblem != "" && f.CurrentProblem == "")
}

// CurrentFocused reports whether the current password takes the focus.
func (f PasswordForm) CurrentFocused() bool { return f.Focused && !f.NewFocused() }

func (PasswordForm) fragment() string { return "password-form" }

// PasswordChanged updates the account page after a password change: an empty form, and the list
// without the other sessions.
type PasswordChanged struct {
	Form  PasswordForm
	List  SessionList
	Email *EmailForm // asks for the first password from now on; nil if the form stays the same
}

func (PasswordChanged) fragment() string { return "password-changed" }

// ProviderPage leads to the OpenID Connect provider.
type ProviderPage struct {
	Provider string // name
	Address  string // URL at the provider
}

func (ProviderPage) screen() screen {
	return screen{file: "identities/continue.html", layout: layoutPlain}
}

// IdentityProblemPage says why a sign-in at the provider has failed.
type IdentityProblemPage struct {
	Provider    string // name
	Problem     string
	Email       string // of the user at the provider; may be empty
	Unknown     bool   // no user is connected to the identity
	Another     bool   // the user can choose another identity
	Connecting  bool   // the user is signed in and wanted to connect an identity
	Joining     bool   // the user wanted to accept an invitation
	NoPasswords bool   // sign-in with a password is turned off
	Again       string // path that starts the sign-in again
	RequestID   string // for support; may be empty
}

func (IdentityProblemPage) screen() screen {
	return screen{file: "identities/problem.html", layout: layoutPlain}
}

// IdentityForm connects the user's identity at the provider, or disconnects it.
type IdentityForm struct {
	Provider  string // name
	Connected bool
	Email     string // of the identity; may be empty
	Since     Moment // when it was connected
	Decides   bool   // the provider decides about the access of connected users
	Problem   string // why it was not disconnected
	Focused   bool   // the heading takes the focus
}

func (IdentityForm) fragment() string { return "identity-form" }

// IdentityDisconnected updates the account page after a disconnection: the form, and the list
// without the other sessions.
type IdentityDisconnected struct {
	Form IdentityForm
	List SessionList
}

func (IdentityDisconnected) fragment() string { return "identity-disconnected" }
