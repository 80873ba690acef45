package templates

// SettingsPage is /settings, where owners change what concerns the whole account.
type SettingsPage struct {
	Name      AccountNameForm
	TwoStep   TwoStepRequirement
	Webhooks  bool           // the account can have webhooks
	KeyExpiry *KeyExpiryRule // nil: keys need no expiry
	Unused    UnusedKeysForm
}

// KeyExpiryRule says that keys must expire.
type KeyExpiryRule struct {
	Maximum string // the longest time until a key expires
	Without int    // the number of active keys without an expiry
}

// UnusedKeysForm sets when unused keys are revoked.
type UnusedKeysForm struct {
	Choices []UnusedChoice
	Mail    bool   // people get mails before
	Problem string // the error of the choice
	Saved   bool   // the heading takes the focus
}

// UnusedChoice is a time without a use.
type UnusedChoice struct {
	Days    int // 0: never
	Name    string
	Current bool
}

func (UnusedKeysForm) fragment() string { return "unused-keys-form" }

func (SettingsPage) screen() screen {
	return screen{file: "settings/show.html", section: SectionSettings}
}

// AccountNameForm is the form that renames the account.
type AccountNameForm struct {
	Name    string // as submitted
	Problem string // the error of the name
	Saved   bool   // the heading takes the focus
}

func (AccountNameForm) fragment() string { return "account-name-form" }

// TwoStepRequirement requires two-step verification of everyone in the account.
type TwoStepRequirement struct {
	Required bool
	Own      bool // the user has a second factor
	// An authenticator app has no effect, because nobody signs in with a password.
	NoApp         bool
	Confirming    bool // asks whether to change the requirement
	Focused       bool // the button takes the focus
	People        int  // who may sign in
	WithoutFactor int  // of these
}

func (TwoStepRequirement) fragment() string { return "two-step-requirement" }
