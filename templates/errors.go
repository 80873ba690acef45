package templates

// ErrorPage is what stands in place of a page that cannot be shown.
type ErrorPage struct {
	Status    int
	Title     string
	Message   string
	Again     string // address to try again; empty: that would not help
	Check     string // address that tells what became of a deed; empty: that is known
	RequestID string // for support; empty: support could do nothing about it
}

func (ErrorPage) screen() screen { return screen{file: "errors/show.html"} }

// Failure is an action that did not happen, told on the page that it was tried
// on, where everything stays as it was.
type Failure struct {
	Message   string
	RequestID string // for support; empty: support could do nothing about it
}

func (Failure) fragment() string { return "failure" }
