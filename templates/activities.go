package templates

// ActivityPage is /activity.
type ActivityPage struct {
	Filter     ActivityFilter
	Export     string         // address of the same as a file
	Activities []ActivityItem // newest first
	Newest     string         // address of the newest page
	Older      string         // address of the page of older activity; empty: there is none
	Paged      bool           // this is not the newest page
}

func (ActivityPage) screen() screen {
	return screen{file: "activities/index.html", layout: layoutPortal, section: SectionActivity}
}

func (ActivityPage) fragment() string { return "activity" }

// ActivityFilter is the choice of what the record is narrowed down to.
type ActivityFilter struct {
	Groups []ActivityKinds
	Chosen string // an action; empty: everything
}

// ActivityKinds are kinds of activity that concern the same.
type ActivityKinds struct {
	Name  string
	Kinds []ActivityKind
}

// ActivityKind is one choice of the filter.
type ActivityKind struct {
	Action string // such as "api_key.generated"
	Name   string
	Chosen bool
}

// ActivityItem is one line of the record.
type ActivityItem struct {
	Actor    string // an e-mail, or "Operator"
	Action   string // such as "api_key.generated"
	Label    string // what the subject was called at the time
	Former   string // what a key was called before it was renamed; empty: unknown
	Key      string // the key that it is about, masked; empty: none, or it was deleted
	Replaced string // the key that a new one takes the place of, masked; empty: none
	Address  string // the actor's network address; empty for an operator
	At       Moment
	Refusals Count // requests refused in the last hour, where a key was revoked
}
