package templates

import "net/http"

// ErrorPage is the page of an error.
type ErrorPage struct {
	Status    int
	Title     string
	Message   string
	Again     string // URL to try again; empty if a retry would not help
	Retry     *Retry // form to submit again; nil if there was none or a retry would not help
	Check     string // URL that shows the outcome of the request; empty if the outcome is known
	RequestID string // for support; empty for client errors
}

func (ErrorPage) screen() screen { return screen{file: "errors/show.html"} }

// Failed reports whether the error is a server error.
func (p ErrorPage) Failed() bool { return p.Status >= http.StatusInternalServerError }

// Retry is a form whose submission failed, to be submitted again.
type Retry struct {
	Action string
	Fields []RetryField
}

// RetryField is one field of a [Retry].
type RetryField struct {
	Name         string
	Title        string // the visible label; empty for a hidden field
	Value        string // as submitted
	Secret       bool   // a password, which must be entered again
	Autocomplete string // the autocomplete attribute; empty turns it off
}

// Failure is the alert of a failed HTMX request. The rest of the page does not change.
type Failure struct {
	Message   string
	RequestID string // for support; empty for client errors
}

func (Failure) fragment() string { return "failure" }
