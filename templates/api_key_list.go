package templates

import (
	"strings"

	"github.com/google/uuid"
)

// APIKeyList is the list of active keys, or what stands in its place.
type APIKeyList struct {
	Header  APIKeyListHeader
	Filter  *APIKeyFilter // nil: there are too few keys to look for one
	Columns []APIKeyColumn
	Keys    []APIKeyRow
	Address string // of the list in this order
	Version string // of what the list shows
}

func (APIKeyList) fragment() string { return "api-key-list" }

// Query returns the query of Address with its question mark, or "".
func (l APIKeyList) Query() string {
	if _, query, ok := strings.Cut(l.Address, "?"); ok {
		return "?" + query
	}
	return ""
}

// APIKeyListHeader is the heading of the list.
type APIKeyListHeader struct {
	Count, Limit int  // active keys: how many there are, and can be
	Focused      bool // the heading takes the focus
}

func (APIKeyListHeader) fragment() string { return "api-key-list-header" }

// Full reports whether there can be no more keys.
func (h APIKeyListHeader) Full() bool { return h.Count >= h.Limit }

// APIKeyFilter is the form that narrows the list down to some labels.
type APIKeyFilter struct {
	Text            string // part of a label; empty: all keys are shown
	Shown, Count    int    // keys
	Sort, Direction string // what the form keeps; empty: the order that goes without saying
}

// APIKeyColumn is a column that the list can be sorted by.
type APIKeyColumn struct {
	ID, Name string
	Address  string // of the list sorted by it, or by it in the other direction
	Order    string // "ascending", "descending"; empty: the list is not sorted by it
}

// APIKeyRow is one active key in the list.
type APIKeyRow struct {
	ID            uuid.UUID
	Label, Masked string
	Created       Moment
	LastUsed      *Moment             // nil: never
	Sparkline     string              // path of the last 30 days
	Filtered      bool                // the filter leaves it out
	Confirmation  *APIKeyConfirmation // nil unless the row asks whether to revoke the key
	Rename        *APIKeyRename       // nil unless the row asks for another label
	Details       *APIKeyDetails      // nil unless there is a row of details below
	Focused       bool                // the row's Revoke takes the focus
	RenameFocused bool                // the row's Rename takes the focus
}

func (APIKeyRow) fragment() string { return "api-key" }

// Open reports whether the row asks for something.
func (r APIKeyRow) Open() bool { return r.Confirmation != nil || r.Rename != nil }

// APIKeyConfirmation is what to know before a key is revoked.
type APIKeyConfirmation struct {
	LastUsed *Moment // nil: never
	Requests Count   // in the last 24 hours
	InUse    bool    // within the last 7 days
	Checked  *Moment // when it was still active, after a revocation of unknown outcome
}

// APIKeyRename is the form that gives a key another label.
type APIKeyRename struct {
	Label   string // as it was typed
	Problem string // what is wrong with it
}

// APIKeyDetails is the row of details below a key's own. It says neither the
// label nor the masked key, by which people and programs find the row of the key.
type APIKeyDetails struct {
	ID       uuid.UUID
	Chart    UsageChart
	LastDay  Count   // requests in the last 24 hours
	LastUsed *Moment // nil: never
	Created  Moment
}

func (APIKeyDetails) fragment() string { return "api-key-details" }

// APIKeyRevoked is what changes on the page of keys when one is revoked: its row
// goes, and the list counts one less or gives way to "No API keys yet".
type APIKeyRevoked struct {
	ID   uuid.UUID
	List APIKeyList
}

func (APIKeyRevoked) fragment() string { return "api-key-revoked" }
