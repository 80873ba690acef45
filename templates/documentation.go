package templates

import "strings"

// Span is a part of a sentence: words, or code in a monospaced font.
type Span struct {
	Code bool
	Text string
}

// Prose is text in paragraphs.
type Prose [][]Span

// NewProse parses text. An empty line ends a paragraph, and backquotes enclose code.
func NewProse(text string) Prose {
	var prose Prose
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		var spans []Span
		for i, part := range strings.Split(paragraph, "`") {
			if part != "" {
				spans = append(spans, Span{i%2 == 1, part})
			}
		}
		if len(spans) > 0 {
			prose = append(prose, spans)
		}
	}
	return prose
}

func documentationScreen(file string, section Section) screen {
	return screen{file: "documentation/" + file, layout: layoutDocumentation, section: section}
}

// Contents is the index of the documentation. Every documentation page shows it.
type Contents []ContentsGroup

// ContentsGroup is the index of a page or a part of it.
type ContentsGroup struct {
	Name    string
	Entries []ContentsEntry
}

// ContentsEntry is a link to a section.
type ContentsEntry struct {
	Name, URL string
	Method    string // of an operation; empty otherwise
}

// NewContents returns the index.
func NewContents(reference ReferencePage, changelog ChangelogPage) Contents {
	guides := ContentsGroup{Name: "Guides"}
	for _, guide := range GuideSections() {
		guides.Entries = append(guides.Entries, ContentsEntry{Name: guide.Name, URL: "/docs/guides#" + guide.ID})
	}
	contents := Contents{
		guides,
		{Name: "API reference", Entries: []ContentsEntry{
			{Name: "Introduction", URL: "/docs#introduction"},
			{Name: "Errors", URL: "/docs#errors"},
		}},
	}
	for _, group := range reference.Groups {
		part := ContentsGroup{Name: group.Name}
		for _, o := range group.Operations {
			part.Entries = append(part.Entries, ContentsEntry{Name: o.Summary, URL: "/docs#" + o.ID, Method: o.Method})
		}
		contents = append(contents, part)
	}
	codes := ContentsGroup{Name: "Error codes"}
	for _, code := range reference.Errors {
		codes.Entries = append(codes.Entries, ContentsEntry{Name: code.Code, URL: "/docs#" + code.Code})
	}
	versions := ContentsGroup{Name: "Changelog"}
	for _, release := range changelog.Releases {
		versions.Entries = append(versions.Entries, ContentsEntry{Name: release.Version, URL: "/docs/changelog#v" + release.Version})
	}
	return append(contents, codes, versions)
}

// ReferencePage is /docs.
type ReferencePage struct {
	Contents Contents
	Version  string
	Summary  string
	Intro    Prose
	BaseURL  string
	Groups   []OperationGroup
	Errors   []ErrorCode
}

func (ReferencePage) screen() screen { return documentationScreen("reference.html", SectionReference) }

// Snippets returns all examples of the page.
func (p ReferencePage) Snippets() []Snippet {
	var all []Snippet
	for _, group := range p.Groups {
		for _, operation := range group.Operations {
			all = append(append(all, operation.Curl), operation.Examples...)
		}
	}
	return all
}

// OperationGroup is the operations with one tag.
type OperationGroup struct {
	ID, Name, Description string
	Operations            []Operation
}

// Operation is a method of a path.
type Operation struct {
	ID, Method, Path, Summary string
	Description               Prose
	Scheme                    string // of its credentials; empty: anyone may call it
	Authentication            Prose  // describes the scheme
	Parameters                []Field
	Body                      *RequestBody // nil: none
	Responses                 []Response
	Curl                      Snippet
	Examples                  []Snippet // of the successful response
}

// SchemeAPIKey is the security scheme of the API keys.
const SchemeAPIKey = "apiKey"

// Keyed reports whether the operation requires an API key.
func (o Operation) Keyed() bool { return o.Scheme == SchemeAPIKey }

// RequestBody is the body of a request.
type RequestBody struct {
	Type        string // media type
	Description Prose
	Fields      []Field
	Example     string
}

// Response is a response of an operation.
type Response struct {
	Status      string
	Code        string // of an error; empty otherwise
	Description Prose
	Headers     []Field
	Shapes      []Shape
}

// Failed reports whether the response is an error.
func (r Response) Failed() bool { return r.Status >= "4" }

// Shape is one of the shapes that a body can have.
type Shape struct {
	Name   string // empty if there is only one
	Fields []Field
}

// Field is a field of an object, a header or a parameter.
type Field struct {
	Name, Type  string
	Required    bool
	Description Prose
	Values      []string // all possible values; empty: any
	Fields      []Field  // of an object, or of the objects in a list
}

// ErrorCode is an error of the API.
type ErrorCode struct {
	Status, Code string
	Description  Prose
	Messages     []ErrorMessage
}

// ErrorMessage is an example of an error. Reason is the value of X-Error-Reason, if it has one.
type ErrorMessage struct{ Cause, Reason, Message string }

// ChangelogPage is /docs/changelog.
type ChangelogPage struct {
	Contents Contents
	Releases []Release
}

func (ChangelogPage) screen() screen { return documentationScreen("changelog.html", SectionChangelog) }

// Release is a version of the API.
type Release struct {
	Version, Date string // date: 2006-01-02
	Changes       []Prose
}
