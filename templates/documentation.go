package templates

import (
	"bytes"
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"text/template"

	"portal/models/record"
)

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

// Documentation is the content of all pages about the API.
type Documentation struct {
	Reference Reference
	Guides    Guides
	Workloads []WorkloadGuide // empty: every key has a secret
	Releases  []Release
	Contents  Contents
	Events    []EventList // of webhooks
	Operated  bool        // the operator API is on
}

//go:embed documentation/llms.txt
var indexFile string

// Index returns llms.txt, which lists all pages for coding agents (https://llmstxt.org).
func (d Documentation) Index(product string) ([]byte, error) {
	parsed, err := template.New("llms.txt").Parse(indexFile)
	if err != nil {
		return nil, err
	}
	var index bytes.Buffer
	err = parsed.Execute(&index, struct {
		Documentation
		Product string
	}{d, product})
	return index.Bytes(), err
}

// DocumentationPage is a page about the API.
type DocumentationPage struct {
	*Documentation

	Path, Title string
	Sections    []GuideSection
	Groups      []OperationGroup

	Query string                // of a search
	Found []DocumentationResult // by a search

	file   string
	book   Section
	groups []tagged

	NamesAgent bool // in its examples
}

func (p DocumentationPage) screen() screen {
	return screen{file: "documentation/" + p.file, layout: layoutDocumentation, section: p.book}
}

// tableOfContents is the pages of the books: "Use the API", "Run behind a gateway" and "Operate".
// No page is longer than 12,000 px on a phone, because readers search a page with their browser.
var tableOfContents = []DocumentationPage{
	{
		Path: "/docs", Title: "Use the API", file: "api.html", book: SectionAPI, NamesAgent: true,
		Sections: []GuideSection{
			{"quick-start", "From key to widget in five minutes"},
			{"introduction", "Base URL and authentication"},
		},
		groups: []tagged{{tag: "widget-tokens"}, {tag: "agents"}},
	},
	{
		Path: "/docs/widget", Title: "Complete widget", file: "widget.html", book: SectionAPI, NamesAgent: true,
		Sections: []GuideSection{{"widget", "Start from a complete widget"}},
	},
	{
		Path: "/docs/guides", Title: "Guides", file: "guides.html", book: SectionAPI, NamesAgent: true,
		Sections: []GuideSection{
			{"context", "Tell the agent who is calling"},
			{"livekit", "Use LiveKit’s SDKs"},
			{"renew", "Renew early and cache"},
			{"introspection", "Introspect a token"},
			{"rate-limits", "Rate limits and backoff"},
			{"rotation", "Rotate a key"},
		},
		groups: []tagged{{tag: "public", only: []string{"showDescription", "showHealth", "showReadiness"}}},
	},
	{
		Path: "/docs/workload-identity", Title: "Use the API without a stored key", file: workloadsFile, book: SectionAPI,
		Sections: []GuideSection{{"workload-identity", "Exchange a token"}},
		groups:   []tagged{{tag: "public", id: "exchange", name: "Operation", only: []string{"exchangeToken"}}},
	},
	{
		Path: "/docs/leaked-keys", Title: "Leaked keys", file: "leaked_keys.html", book: SectionAPI,
		Sections: []GuideSection{{"scanning", "Scan for leaked keys"}},
		groups:   []tagged{{tag: "public", id: "reports", name: "Reports", only: []string{"reportLeaks"}}},
	},
	{
		Path: "/docs/reports", Title: "Reports", file: "reports.html", book: SectionAPI,
		Sections: []GuideSection{
			{"siem", "Export to a SIEM"},
			{"calls", "Calls and limits"},
		},
		groups: []tagged{{tag: "reports", id: "report-operations", name: "Operations"}},
	},
	{
		Path: "/docs/webhooks", Title: "Webhooks", file: "webhooks.html", book: SectionAPI,
		Sections: []GuideSection{
			{"webhooks", "Receive webhooks"},
			{"events", "Events"},
		},
	},
	{
		Path: "/docs/errors", Title: "Errors", file: "errors.html", book: SectionAPI,
		Sections: []GuideSection{
			{"unauthorized", "Handle each 401"},
			{"errors", "Error codes"},
		},
	},
	{
		Path: "/docs/gateway", Title: "Run behind a gateway", file: "gateway.html", book: SectionGateway,
		Sections: []GuideSection{
			{"gateways", "Authorize requests at a gateway"},
			{"runtime", "Run a voice runtime of your own"},
			{"verify", "Verify a widget token"},
		},
		groups: []tagged{
			{tag: "gateways", id: "authorization", name: "Authorization"},
			{tag: "public", id: "discovery", name: "Discovery", only: []string{"showSigningKeys", "showAuthorizationServer", "showOpenIDConfiguration"}},
		},
	},
	{
		Path: "/docs/operate", Title: "Operate", file: "operate.html", book: SectionOperate,
		Sections: []GuideSection{{"operator-api", "Operator API"}},
		groups:   []tagged{{tag: "operator-api", only: []string{"listAccounts", "showAccount", "putAccount", "eraseAccount", "listAccountAgents"}}},
	},
	{
		Path: "/docs/operate/people", Title: "Operate: people", file: "operate.html", book: SectionOperate,
		groups: []tagged{{tag: "operator-api", id: "people", name: "People", only: []string{
			"listUsers", "addUser", "changeUser", "removeUser", "resetSecondFactor", "createSignInLink",
		}}},
	},
	{
		Path: "/docs/operate/keys", Title: "Operate: agents and keys", file: "operate.html", book: SectionOperate,
		groups: []tagged{{tag: "operator-api", id: "operator-keys", name: "Agents and keys", only: []string{
			"putAgent", "removeAgent", "listKeys", "putKey", "revokeKey",
		}}},
	},
	{
		Path: "/docs/operate/reports", Title: "Operate: activity and calls", file: "operate.html", book: SectionOperate,
		groups: []tagged{{tag: "operator-api", id: "operator-reports", name: "Activity and calls", only: []string{
			"listAllActivity", "listUsageOfAccount", "listCalls", "endCall",
		}}},
	},
	{Path: "/docs/changelog", Title: "Changelog", file: "changelog.html", book: SectionChangelog},
}

// workloadsFile has a section for each guide.
const workloadsFile = "workload_identity.html"

// NewDocumentation returns the pages of the table of contents, without those of what is off.
func NewDocumentation(d Documentation) (pages []DocumentationPage) {
	d.Events = eventLists()
	for _, page := range tableOfContents {
		switch {
		case page.book == SectionOperate && !d.Operated, page.file == workloadsFile && len(d.Workloads) == 0:
			continue
		case page.file == workloadsFile:
			page.Sections = slices.Clone(page.Sections)
			for _, guide := range d.Workloads {
				page.Sections = append(page.Sections, GuideSection{guide.ID(), guide.Name})
			}
		}
		for _, group := range page.groups {
			page.Groups = append(page.Groups, d.Reference.group(group))
		}
		d.Contents = append(d.Contents, page.contents(d))
		pages = append(pages, page)
	}
	for i := range pages {
		pages[i].Documentation = &d
	}
	return pages
}

// For returns the page with the id of an agent in its examples.
func (p DocumentationPage) For(agentID string) DocumentationPage {
	d := *p.Documentation
	d.Guides.AgentID, d.Guides.Context = agentID, d.Guides.Context.of(agentID)
	d.Guides.Examples = NewExamples(d.Guides.BaseURL+exchangePath, agentID)
	p.Documentation, p.Groups = &d, slices.Clone(p.Groups)
	for i, group := range p.Groups {
		p.Groups[i].Operations = slices.Clone(group.Operations)
		for j, operation := range group.Operations {
			p.Groups[i].Operations[j].Curl = operation.Curl.of(agentID)
		}
	}
	return p
}

// Searched returns the page with what a search finds in the documentation of a page.
func (p DocumentationPage) Searched() DocumentationPage {
	return DocumentationPage{Documentation: p.Documentation, Path: "/docs/search", Title: "Search", file: "search.html"}
}

// DocumentationResult is a section that a search finds.
type DocumentationResult struct {
	Page, Heading, URL, Excerpt string
}

// EventList is the events of a group.
type EventList struct {
	Name  string
	Types []string
}

// eventLists returns all events in the order of the form.
func eventLists() (lists []EventList) {
	for _, group := range record.EventGroups {
		lists = append(lists, EventList{webhookGroupNames[group], record.Events(group)})
	}
	return lists
}

// contents returns the part of the index about the page.
func (p DocumentationPage) contents(d Documentation) ContentsGroup {
	part := ContentsGroup{Name: p.Title, Path: p.Path}
	add := func(name, id, method string) {
		part.Entries = append(part.Entries, ContentsEntry{Name: name, URL: p.Path + "#" + id, Method: method})
	}
	for _, section := range p.Sections {
		add(section.Name, section.ID, "")
		if section.ID == "errors" {
			for _, code := range d.Reference.Errors {
				add(code.Code, code.Code, "")
			}
		}
	}
	for _, group := range p.Groups {
		for _, o := range group.Operations {
			add(o.Summary, o.ID, o.Method)
		}
	}
	if p.book == SectionChangelog {
		for _, release := range d.Releases {
			add(release.Version, "v"+release.Version, "")
		}
	}
	return part
}

// Contents is the index of the documentation. Every documentation page shows it.
type Contents []ContentsGroup

// ContentsGroup is the index of a page or a part of it.
type ContentsGroup struct {
	Name    string
	Path    string // of the page
	Entries []ContentsEntry
}

// ContentsEntry is a link to a section.
type ContentsEntry struct {
	Name, URL string
	Method    string // of an operation; empty otherwise
}

// Reference describes the operations and the errors of the API.
type Reference struct {
	Version string
	Summary string
	Intro   Prose
	BaseURL string
	Groups  []OperationGroup
	Errors  []ErrorCode
}

// Snippets returns all examples.
func (p Reference) Snippets() []Snippet {
	var all []Snippet
	for _, group := range p.Groups {
		for _, operation := range group.Operations {
			all = append(append(all, operation.Curl), operation.Examples...)
		}
	}
	return all
}

// OperationGroup is the operations with one tag, or some of them.
type OperationGroup struct {
	ID, Name    string
	Description Prose // of the tag; empty if only some have another name
	Operations  []Operation
}

// tagged names the operations of a page: all with a tag, or only some of them.
type tagged struct {
	tag      string
	id, name string // on the page; empty: those of the tag
	only     []string
}

// group returns the operations that t names.
func (p Reference) group(t tagged) OperationGroup {
	at := slices.IndexFunc(p.Groups, func(group OperationGroup) bool { return group.ID == t.tag })
	if at < 0 {
		return OperationGroup{ID: t.tag}
	}
	group := p.Groups[at]
	group.ID, group.Name = cmp.Or(t.id, group.ID), cmp.Or(t.name, group.Name)
	if len(t.only) > 0 {
		group.Operations = slices.DeleteFunc(slices.Clone(group.Operations), func(o Operation) bool { return !slices.Contains(t.only, o.ID) })
		if t.name != "" {
			group.Description = nil
		}
	}
	return group
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
	Headers                   []Field // of the responses; the type names their statuses
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
	Codes       []string // of an error; empty otherwise
	Description Prose
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

// Release is a version of the API.
type Release struct {
	Version, Date string // date: 2006-01-02
	Changes       []Prose
}
