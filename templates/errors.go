package templates

import "net/http"

// ErrorPage is what stands in place of a page that cannot be shown.
type ErrorPage struct {
	Status    int
	Title     string
	Message   string
	Again     string // address to try again; empty: that would not help
	Retry     *Retry // form to try again; nil: none was sent, or that would not help
	Check     string // address that tells what became of a deed; empty: that is known
	RequestID string // for support; empty: support could do nothing about it
}

func (ErrorPage) screen() screen { return screen{file: "errors/show.html"} }

// Failed reports whether it is no fault of whoever asked.
func (p ErrorPage) Failed() bool { return p.Status >= http.StatusInternalServerError }

// Retry is a form that was sent in vain, to be sent again.
type Retry struct {
	Action string
	Fields []RetryField
}

// RetryField is one field of a form that was sent in vain.
type RetryField struct {
	Name         string
	Title        string // what people call it; empty: they do not see it
	Value        string // as it was typed
	Secret       bool   // to be typed again
	Autocomplete string // what a browser fills in; empty: nothing
}

// Failure is an action that did not happen, told on the page that it was tried
// on, where everything stays as it was.
type Failure struct {
	Message   string
	RequestID string // for support; empty: support could do nothing about it
}

func (Failure) fragment() string { return "failure" }
