package templates

import (
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"portal/models/value"
)

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

// Unavailable reports whether other pages fail too.
func (p ErrorPage) Unavailable() bool { return p.Status == http.StatusServiceUnavailable }

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

// NewRetry returns a form with those of the sent fields that the templates' forms have, in their
// order. At most 100 values of a hidden field are kept, and one of any other. API keys in the
// values are redacted.
func NewRetry(action string, sent url.Values) *Retry {
	retry := &Retry{Action: action}
	for _, field := range formFields() {
		for i, text := range sent[field.Name] {
			if i > 0 && field.Title != "" || i >= value.MaxKeyAgents {
				break
			}
			if !field.Secret {
				field.Value = value.RedactKeys(text)
			}
			retry.Fields = append(retry.Fields, field)
		}
	}
	return retry
}

var (
	fieldTag     = regexp.MustCompile(`<(?:input|select|textarea|button)(?:\s[^>]*)?\sname="([a-z_]+)"[^>]*>`)
	autocomplete = regexp.MustCompile(`\sautocomplete="([a-z-]+)"`)
)

// formFields returns the fields of all forms, without values. Texts of one line are visible. If
// fields of several forms have the same name, the last one counts, which is that of the sign-in.
var formFields = sync.OnceValue(func() (fields []RetryField) {
	names, _ := fs.Glob(files, "*/*.html") // the pattern is valid
	for _, file := range names {
		text, _ := files.ReadFile(file)
		for _, match := range fieldTag.FindAllStringSubmatch(string(text), -1) {
			tag, field := match[0], RetryField{Name: match[1]}
			is := func(kind string) bool { return strings.Contains(tag, ` type="`+kind+`"`) }
			if strings.Contains(tag, " readonly") || is("hidden") && !strings.Contains(tag, " value=") {
				continue // not the user's, or filled by a script and used once
			}
			if match := autocomplete.FindStringSubmatch(tag); match != nil {
				field.Autocomplete = match[1]
			}
			field.Secret = is("password") || field.Autocomplete == "one-time-code"
			if field.Secret || is("text") || is("email") {
				field.Title = strings.ReplaceAll(strings.ToUpper(field.Name[:1])+field.Name[1:], "_", " ")
			}
			fields = append(slices.DeleteFunc(fields, func(other RetryField) bool { return other.Name == field.Name }), field)
		}
	}
	return fields
})

// Failure is the alert of a failed HTMX request. The rest of the page does not change.
type Failure struct {
	Message   string
	RequestID string // for support; empty for client errors
}

func (Failure) fragment() string { return "failure" }
