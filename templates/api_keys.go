package templates

import (
	"github.com/google/uuid"

	"portal/models"
)

// APIKeysPage is /api-keys.
type APIKeysPage struct {
	Form APIKeyForm
	List APIKeyList
}

func (APIKeysPage) screen() screen {
	return screen{file: "api_keys/index.html", section: SectionAPIKeys}
}

// APIKeyForm is the form that generates a key.
type APIKeyForm struct {
	FormID       uuid.UUID   // unique for each rendered form; a repeat creates nothing
	Label        string      // as submitted
	LabelProblem string      // the error of the label
	Problem      string      // an error that does not concern the label
	Repeated     *models.Key // the key that this form has already created; nil if none
}

func (APIKeyForm) fragment() string { return "api-key-form" }

// Focused reports whether the label takes the focus.
func (f APIKeyForm) Focused() bool { return f.LabelProblem != "" || f.Problem != "" }

// APIKeyReveal shows a new key once, as a page or as a dialog.
type APIKeyReveal struct {
	ID        uuid.UUID
	Label     string
	Key       string // the whole key; rendered once, in this response only
	AgentID   string // an agent of the account; empty if it has none
	TokenURL  string // endpoint of the example for an account with an agent
	AgentsURL string // endpoint of the example for an account without agents
	Back      string // URL of the page that Done leads to
}

func (APIKeyReveal) screen() screen {
	return screen{file: "api_keys/generated.html", section: SectionAPIKeys}
}

// FirstUse returns the status of a key that has not been used yet.
func (r APIKeyReveal) FirstUse() FirstUse { return FirstUse{ID: r.ID} }

// FirstUse is the status line that shows whether a key has received its first request.
type FirstUse struct {
	ID            uuid.UUID
	Used, Revoked bool
}

func (FirstUse) fragment() string { return "first-use" }

// APIKeyGenerated updates the page after a key was generated: a new form id and the dialog.
type APIKeyGenerated struct {
	FormID uuid.UUID // the next form's
	Reveal APIKeyReveal
}

func (APIKeyGenerated) fragment() string { return "api-key-generated" }
