package templates

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"portal/models/calls"
	"portal/models/keys"
	"portal/models/value"
)

// APIKeysPage is /api-keys.
type APIKeysPage struct {
	Form       APIKeyForm
	WorthALook []WorthALook
	List       APIKeyList
}

// WorthALook is a link to a list of keys or people.
type WorthALook struct {
	ID, URL, Text string
	Current       bool // the page has this list
}

// HintsDismissed removes what is worth a look.
type HintsDismissed struct{}

func (HintsDismissed) fragment() string { return "hints-dismissed" }

func (APIKeysPage) screen() screen {
	return screen{file: "api_keys/index.html", section: SectionAPIKeys}
}

// APIKeyForm is the form that generates a key.
type APIKeyForm struct {
	FormID       uuid.UUID // unique for each rendered form; a repeat creates nothing
	Label        string    // as submitted
	OnlyReports  bool      // as submitted
	LabelProblem string    // the error of the label
	Problem      string    // an error that does not concern the label
	Full         bool      // the account has the most keys
	Repeated     *keys.Key // the key that this form has already created; nil if none

	Trust        TrustForm
	Restrictions KeyRestrictions
}

func (APIKeyForm) fragment() string { return "api-key-form" }

// OtherKind reports whether the fold of other kinds of keys is open: one of them is chosen.
func (f APIKeyForm) OtherKind() bool { return f.OnlyReports || f.Trust.Workload }

// Limit is the most keys that an account can have.
func (APIKeyForm) Limit() int { return value.MaxActiveKeys }

// Focused reports whether the label takes the focus.
func (f APIKeyForm) Focused() bool { return f.LabelProblem != "" || f.Problem != "" }

// APIKeyReveal shows a new key once, as a page or as a dialog.
type APIKeyReveal struct {
	ID       uuid.UUID
	Label    string
	Key      string // the whole key; rendered once, in this response only
	AgentID  string // an agent of the account; empty if it has none
	TokenURL string // endpoint of the example for an account with an agent
	ListURL  string // endpoint of the example without an agent
	Back     string // URL of the page that Done leads to

	Expires      *KeyExpires // nil: never
	Restrictions keys.Restrictions
	OnlyReports  bool // the key reads reports

	// LeaksReported means that scanners can report leaked keys, which are then revoked.
	LeaksReported bool
}

// End returns the end of the reveal.
func (r APIKeyReveal) End() RevealEnd { return RevealEnd{What: "key", Back: r.Back} }

// RevealEnd is the end of a reveal of a value that is shown once.
type RevealEnd struct {
	What   string // the value, such as "key"
	Remedy string // what helps after the value is lost; often empty
	Back   string // URL of the page that Done leads to
}

func (APIKeyReveal) screen() screen {
	return screen{file: "api_keys/generated.html", section: SectionAPIKeys}
}

// Reach says what restricts the key.
func (r APIKeyReveal) Reach() string {
	text := "Never expires."
	if r.Expires != nil {
		text = "Expires " + r.Expires.Words + "."
	}
	switch agents := r.Restrictions.Agents; {
	case r.OnlyReports:
		text += " Reads reports only,"
	case agents == nil:
		text += " Reaches all agents,"
	case len(agents) == 1:
		text += " Reaches 1 agent,"
	default:
		text += fmt.Sprintf(" Reaches %d agents,", len(agents))
	}
	switch networks := r.Restrictions.Networks; len(networks) {
	case 0:
		return text + " from any address."
	case 1:
		return text + " from 1 network."
	default:
		return text + fmt.Sprintf(" from %d networks.", len(networks))
	}
}

// FirstUse returns the status of a key that has not been used yet.
func (r APIKeyReveal) FirstUse() FirstUse { return FirstUse{ID: r.ID} }

// FirstUse is the status line that shows whether a key has received its first request.
type FirstUse struct {
	ID                     uuid.UUID
	Used, Revoked, Expired bool
}

func (FirstUse) fragment() string { return "first-use" }

// APIKeyGenerated updates the page after a key was generated: the next form and the dialog.
type APIKeyGenerated struct {
	FormID uuid.UUID   // the next form's
	Form   *APIKeyForm // nil if nothing but the label was entered
	Reveal APIKeyReveal
}

func (APIKeyGenerated) fragment() string { return "api-key-generated" }

// APIKeyList is the list of active keys, or the text for an empty list.
type APIKeyList struct {
	Orders []APIKeyOrder
	Keys   []APIKeyRow
	Active int    // the number of active keys, also of those that a filter leaves out
	Limit  int    // of keys
	Show   string // the filter; empty: none
	Shown  string // says what the shown keys have in common; empty without a filter
	// Order and filter of the list with their question mark; empty for the default.
	Query   string
	Version string // changes when the content of the list changes

	// Steps lead a new account to its first request; nil: a key has been used, or was revoked.
	Steps []FirstStep

	Filterable bool // the list is long enough to need a filter
	Leaked     LeakedKeys
}

// LeakedKeys is the notice about keys that were revoked as leaked.
type LeakedKeys struct {
	Keys []keys.Key // the latest first
	More bool       // than these
}

// LeaksDismissed removes the notice about leaked keys.
type LeaksDismissed struct{}

func (LeaksDismissed) fragment() string { return "leaks-dismissed" }

func (APIKeyList) fragment() string { return "api-key-list" }

// APIKeyChanges is the list after it has changed.
type APIKeyChanges struct{ APIKeyList }

func (APIKeyChanges) fragment() string { return "api-key-changes" }

// Full reports whether the account has reached the limit.
func (l APIKeyList) Full() bool { return l.Active >= l.Limit }

// FirstStep is a step to the first request of an account.
type FirstStep struct {
	Name, Text, URL string
	Done, Current   bool // Current: the first one that is not done
}

// APIKeyOrder is an order in which the list can be shown.
type APIKeyOrder struct {
	ID, Name string
	Current  bool
}

// APIKeyRow is one active key in the list.
type APIKeyRow struct {
	keys.Key

	Created   Moment
	ShortDate string      // of the creation
	LastUsed  *Moment     // nil if never used
	Requests  Count       // in the last 30 days
	Unused    bool        // for 30 days
	Sparkline string      // SVG path of the last 30 days, on the key's own scale
	Expires   *KeyExpires // nil: never
	// How much of them is used, such as "3 of 5 calls"; empty: none.
	CallLimits   string
	Rotation     *KeyRotation        // with another active key; nil if there is none
	Confirmation *APIKeyConfirmation // not nil while the row confirms a revocation
	Rename       *Rename             // not nil while the row edits the label
	Back         string              // "key" if the page of the key asks; otherwise the list
	Focused      bool                // the Revoke button takes the focus
	MenuFocused  bool                // the menu takes the focus
	Selected     bool
}

func (APIKeyRow) fragment() string { return "api-key" }

// Returns is the URL that Cancel leads to without JavaScript.
func (r APIKeyRow) Returns() string {
	path, button := "/api-keys", "revoke"
	switch {
	case r.Back != "":
		return path + "/" + r.ID.String()
	case r.Rename != nil:
		button = "menu"
	}
	return path + "#" + button + "-" + r.ID.String()
}

// Restricted reports whether the key has a list of agents, which may be empty.
func (r APIKeyRow) Restricted() bool { return r.Agents != nil }

// TrustName returns the provider of a key without a secret and whose tokens the key accepts, or "".
func (r APIKeyRow) TrustName() string {
	if r.Trust == nil {
		return ""
	}
	return r.Trust.Name()
}

// Rotates reports whether the row offers a rotation. A key that replaces another, or that has no
// secret, does not.
func (r APIKeyRow) Rotates() bool {
	return !r.IsWorkload() && (r.Rotation == nil || !r.Rotation.Replaces)
}

// KeyQuestion is a page of its own with the question of a row.
type KeyQuestion struct{ APIKeyRow }

func (KeyQuestion) screen() screen {
	return screen{file: "api_keys/question.html", section: SectionAPIKeys}
}

// KeyExpires is when a key expires, as users see it.
type KeyExpires struct {
	Words string // "22 Dec 2026", "in 3 days"
	Soon  bool   // within a week
}

// NewKeyExpires formats when a key expires. It returns nil if it never does.
func NewKeyExpires(at *time.Time, now time.Time) *KeyExpires {
	if at == nil {
		return nil
	}
	switch left := int((at.Sub(now) + day - 1) / day); {
	case left > 7:
		return &KeyExpires{Words: LastDay(*at).Format("2 Jan 2006")}
	case left == 1:
		return &KeyExpires{"in 1 day", true}
	default:
		return &KeyExpires{fmt.Sprintf("in %d days", left), true}
	}
}

// KeyRotation is the rotation of a key with another one.
type KeyRotation struct {
	Label    string    // of the other key
	Created  string    // "20 Oct"; the masked key would find the row of the other key too
	OldID    uuid.UUID // of the key that is replaced
	Replaces bool      // the key of the row replaces the other one
}

// APIKeyConfirmation shows how much a key is used before it is revoked.
type APIKeyConfirmation struct {
	KeyUse

	KeyID   uuid.UUID
	Checked *Moment          // when the key was last found active, after an unanswered revocation
	Calls   *calls.OpenCalls // nil without a voice server
	Note    string           // of the key

	Reason, ReasonProblem string // as submitted, and its error
}

// KeyUse is how much a key is used.
type KeyUse struct {
	LastUsed *Moment // nil if never used
	Requests Count   // in the last 24 hours
	InUse    bool    // used within the last 7 days
}

// SelectedRevocation asks whether to revoke several keys.
type SelectedRevocation struct {
	Keys []SelectedKey // those that are active

	Reason, ReasonProblem string // as submitted, and its error
}

func (SelectedRevocation) screen() screen {
	return screen{file: "api_keys/revocation.html", section: SectionAPIKeys}
}

func (SelectedRevocation) fragment() string { return "selected-revocation" }

// Calls returns the open calls of all keys.
func (r SelectedRevocation) Calls() (sum Count) {
	for _, key := range r.Keys {
		sum += key.Calls
	}
	return sum
}

// SelectedKey is one of the keys.
type SelectedKey struct {
	keys.Key

	Use   KeyUse
	Calls Count // open ones
}

// Rename is the form that renames a key or an agent.
type Rename struct {
	Name    string // as submitted
	Problem string // the error of the name
}

// APIKeyRevoked removes the row of a revoked key.
type APIKeyRevoked struct{ ID uuid.UUID }

func (APIKeyRevoked) fragment() string { return "api-key-revoked" }

// RevokedKeysPage is /api-keys/revoked.
type RevokedKeysPage struct {
	Keys  []RevokedKeyRow // the latest revocation first
	Days  int             // how long a revoked key is listed
	Older string          // URL of the next page; empty on the last one
	Paged bool            // this is not the first page
}

func (RevokedKeysPage) screen() screen {
	return screen{file: "api_keys/revoked.html", section: SectionAPIKeys}
}

func (RevokedKeysPage) fragment() string { return "revoked-keys" }

// RevokedKeyRow is one revoked key.
type RevokedKeyRow struct {
	keys.Key

	Revoked  Moment // or when it expired
	Expired  bool
	Refusals Count // since the revocation
}
