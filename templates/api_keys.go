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

// APIKeyList is the list of active keys, or the text for an empty list.
type APIKeyList struct {
	Columns []APIKeyColumn
	Usage   APIKeyColumn // the usage figures, which are in the column Actions
	Keys    []APIKeyRow
	Limit   int    // of keys
	Query   string // order of the list with its question mark; empty for the default
	Version string // changes when the content of the list changes

	Filterable bool // the list is long enough to need a filter
}

func (APIKeyList) fragment() string { return "api-key-list" }

// Full reports whether the account has reached the limit.
func (l APIKeyList) Full() bool { return len(l.Keys) >= l.Limit }

// APIKeyColumn is a sortable column.
type APIKeyColumn struct {
	ID, Name string
	Address  string // URL that sorts by this column, or reverses its order
	Order    string // "ascending", "descending", or empty if the list is not sorted by it
}

// APIKeyRow is one active key in the list.
type APIKeyRow struct {
	ID            uuid.UUID
	Label, Masked string
	Created       Moment
	LastUsed      *Moment             // nil if never used
	Requests      Count               // in the last 30 days
	Sparkline     string              // SVG path of the last 30 days
	Twin          *APIKeyTwin         // the other key of a rotation; nil if there is none
	Confirmation  *APIKeyConfirmation // not nil while the row confirms a revocation
	Rename        *APIKeyRename       // not nil while the row edits the label
	Details       *APIKeyDetails      // not nil while the details are open
	Focused       bool                // the Revoke button takes the focus
	MenuFocused   bool                // the menu takes the focus
}

func (APIKeyRow) fragment() string { return "api-key" }

// Rotates reports whether the row offers a rotation. A key that replaces another does not.
func (r APIKeyRow) Rotates() bool { return r.Twin == nil || !r.Twin.Replaces }

// APIKeyTwin is the other key of a rotation.
type APIKeyTwin struct {
	Masked   string
	OldID    uuid.UUID // the old key of the rotation
	Replaces bool      // the key of the row replaces this one
}

// APIKeyConfirmation shows how much a key is used before it is revoked.
type APIKeyConfirmation struct {
	LastUsed *Moment // nil if never used
	Requests Count   // in the last 24 hours
	InUse    bool    // used within the last 7 days
	Checked  *Moment // when the key was last found active, after an unanswered revocation

	Calls *OpenCalls // nil without a voice server
}

// OpenCalls is the number of calls that a revocation ends.
type OpenCalls struct {
	Known bool
	Count int
}

// APIKeyRename is the form that changes the label of a key.
type APIKeyRename struct {
	Label   string // as submitted
	Problem string // the error of the label
}

// APIKeyDetails is the row below the row of a key. It contains neither the label nor the masked
// key, so that a search for them finds the row of the key only.
type APIKeyDetails struct {
	ID       uuid.UUID
	Chart    UsageChart
	LastDay  Count   // requests in the last 24 hours
	LastUsed *Moment // nil if never used
	Created  Moment
	Creator  string // email of the user who generated the key; empty if unknown or the only one
}

func (APIKeyDetails) fragment() string { return "api-key-details" }

// APIKeyRevoked removes the row of a revoked key.
type APIKeyRevoked struct{ ID uuid.UUID }

func (APIKeyRevoked) fragment() string { return "api-key-revoked" }
