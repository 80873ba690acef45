package templates

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
