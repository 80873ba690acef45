package templates

import "github.com/google/uuid"

// ActivityPage is /activity.
type ActivityPage struct {
	Filter     ActivityFilter
	Export     string         // URL of the CSV export
	Activities []ActivityItem // newest first
	Newest     string         // URL of the first page
	Older      string         // URL of the next page; empty on the last one
	Paged      bool           // this is not the first page
}

func (ActivityPage) screen() screen {
	return screen{file: "activities/index.html", layout: layoutPortal, section: SectionActivity}
}

func (ActivityPage) fragment() string { return "activity" }

// ActivityFilter is the form that filters the activity log.
type ActivityFilter struct {
	Groups      []ActivityKinds
	Keys        []ActivityKey // active
	Revoked     []ActivityKey // the latest revocation first
	From, Until string        // days, such as "2026-03-14"; empty if not set
	Search      string
	Active      bool // at least one field is set
}

// ActivityKinds is a group of options.
type ActivityKinds struct {
	Name  string
	Kinds []ActivityKind
}

// ActivityKind is one option of the kind.
type ActivityKind struct {
	Kind   string // an action, such as "api_key.generated", or a group
	Name   string
	Chosen bool
}

// ActivityKey is one option of the key.
type ActivityKey struct {
	ID     uuid.UUID
	Name   string // label and masked key
	Chosen bool
}

// ActivityItem is one entry of the activity log.
type ActivityItem struct {
	Actor      string // an email, "Operator" or "Visitor"
	Action     string // such as "api_key.generated"
	Label      string // name of the key, agent or user at that time
	Former     string // label before a rename
	Key        string // masked key; empty if the entry concerns no key, or a deleted one
	KeyAddress string // URL of the activity of the key
	Replaced   string // masked key that this one replaces; may be empty
	Address    string // IP address of the actor; empty for an operator
	Other      bool   // some attempts came from other addresses
	At         Moment
	Count      Count // of ended sessions or attempts
	Refusals   Count // requests with the revoked key that were refused in the last hour
}
