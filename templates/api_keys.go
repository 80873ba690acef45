package templates

import "github.com/google/uuid"

// APIKeysPage is /api-keys.
type APIKeysPage struct {
	Form APIKeyForm
	List APIKeyList
}

func (APIKeysPage) screen() screen {
	return screen{file: "api_keys/index.html", layout: layoutPortal, section: SectionAPIKeys}
}

// APIKeyForm is the form of generation.
type APIKeyForm struct {
	FormID       uuid.UUID    // of this rendered form: a repeat makes nothing
	Label        string       // as it was typed
	LabelProblem string       // what is wrong with the label
	Problem      string       // why no key was made, the label being right
	Repeated     *RepeatedKey // the form that was sent has made this key already
}

func (APIKeyForm) fragment() string { return "api-key-form" }

// Focused reports whether the field of the label is where to go on.
func (f APIKeyForm) Focused() bool { return f.LabelProblem != "" || f.Problem != "" }

// RepeatedKey is what a repeated form has already made.
type RepeatedKey struct {
	ID            uuid.UUID
	Label, Masked string
	Revoked       bool // since then
}

// APIKeyList is the list of active keys, or what stands in its place.
type APIKeyList struct {
	Keys    []APIKeyRow
	Focused bool // the list's heading takes the focus
}

func (APIKeyList) fragment() string { return "api-key-list" }

// APIKeyRow is one active key in the list.
type APIKeyRow struct {
	ID            uuid.UUID
	Label, Masked string
	Created       Moment
	LastUsed      *Moment // nil: never
	Confirming    bool    // the row asks whether to revoke the key
	Focused       bool    // the row's Revoke takes the focus
}

func (APIKeyRow) fragment() string { return "api-key" }

// APIKeyReveal is the one showing of a new key: a page, or a dialog on the page
// of keys.
type APIKeyReveal struct {
	Label    string
	Key      string // the whole key; stands in this one place of this one response
	TokenURL string // of the endpoint that the example calls
	AgentID  string // one of the account's agents; empty when it has none
}

func (APIKeyReveal) screen() screen {
	return screen{file: "api_keys/generated.html", layout: layoutPortal, section: SectionAPIKeys}
}

// APIKeyGenerated is what changes on the page of keys when one is generated: the
// form is renewed, the list has one more, and the dialog shows the key.
type APIKeyGenerated struct {
	Form   APIKeyForm
	List   *APIKeyList // nil: not known, and left as it is
	Reveal APIKeyReveal
}

func (APIKeyGenerated) fragment() string { return "api-key-generated" }

// APIKeyRevoked is what changes on the page of keys when one is revoked: its row
// goes, and the list counts one less or gives way to "No API keys yet".
type APIKeyRevoked struct{ List APIKeyList }

func (APIKeyRevoked) fragment() string { return "api-key-revoked" }
