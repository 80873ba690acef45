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

// APIKeyReveal is the one showing of a new key: a page, or a dialog on the page
// of keys.
type APIKeyReveal struct {
	ID        uuid.UUID
	Label     string
	Key       string // the whole key; stands in this one place of this one response
	AgentID   string // one of the account's agents; empty when it has none
	TokenURL  string // of the endpoint that the example calls with an agent
	AgentsURL string // of the endpoint that it calls without one
	Back      string // address of the page to go on with
}

func (APIKeyReveal) screen() screen {
	return screen{file: "api_keys/generated.html", layout: layoutPortal, section: SectionAPIKeys}
}

// FirstUse is what is known of the first request of the key.
func (r APIKeyReveal) FirstUse() FirstUse { return FirstUse{ID: r.ID} }

// FirstUse tells whether a key has received its first request.
type FirstUse struct {
	ID            uuid.UUID
	Used, Revoked bool
}

func (FirstUse) fragment() string { return "first-use" }

// APIKeyGenerated is what changes on the page of keys when one is generated: the
// form is renewed, the list has one more, and the dialog shows the key.
type APIKeyGenerated struct {
	Form   APIKeyForm
	Header *APIKeyListHeader // nil: not known, and left as it is
	Row    *APIKeyRow        // of the new key; nil: there is no table yet, and the page asks for it
	Reveal APIKeyReveal
}

func (APIKeyGenerated) fragment() string { return "api-key-generated" }
