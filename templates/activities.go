package templates

// ActivityPage is /activity.
type ActivityPage struct {
	Activities []ActivityItem // newest first
	Older      string         // address of the page of older activity; empty: there is none
	Paged      bool           // this is not the newest page
}

func (ActivityPage) screen() screen {
	return screen{file: "activities/index.html", layout: layoutPortal, section: SectionActivity}
}

func (ActivityPage) fragment() string { return "activity" }

// ActivityItem is one line of the record.
type ActivityItem struct {
	Actor   string // an e-mail, or "Operator"
	Action  string // such as "api_key.generated"
	Label   string // what the subject was called at the time
	Address string // the actor's network address; empty for an operator
	At      Moment
}
