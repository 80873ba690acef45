// Package templates holds every screen of the portal, and the typed data that
// each is made of. A screen is one file; it defines its title, its content, and
// the fragments that its content is composed of. A page is a screen within its
// layout, a fragment is one of its parts alone, so that the markup exists once.
//
// It never sees a request: what it is given is what it shows. Rendering ends in
// bytes and not in a response, so that a template that fails half way has sent
// nothing.
package templates

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
)

// Every folder is named, and every file by its ending: a pattern that named a
// folder alone would leave out files that begin with "_" or "." silently.
//
//go:embed layouts/*.html partials/*.html
//go:embed account/*.html activities/*.html agents/*.html api_keys/*.html errors/*.html integration/*.html rotations/*.html sessions/*.html
var files embed.FS

// shared are the templates that every screen can use.
var shared = []string{"layouts/*.html", "partials/*.html"}

// Page is what one screen shows.
type Page interface{ screen() screen }

// Fragment is what a part of a screen shows: the element that it replaces, or
// several of them.
type Fragment interface{ fragment() string }

// screen is where a page is found, and what surrounds it.
type screen struct {
	file    string
	layout  string
	section Section // the entry of the navigation that is marked as current
}

// The layouts: with the navigation of those who have signed in, and without. A
// screen that names neither has that of whoever it is shown to.
const (
	layoutPortal = "portal"
	layoutPlain  = "plain"
)

// Section is a part of the portal that the navigation leads to.
type Section string

// The sections.
const (
	SectionAPIKeys   Section = "api-keys"
	SectionAgents    Section = "agents"
	SectionIntegrate Section = "integrate"
	SectionActivity  Section = "activity"
	SectionAccount   Section = "account" // not in the navigation: beside it, with the name of the account
)

// Frame is what a page shows around its own content.
type Frame struct {
	Account string // name of the account; empty for a visitor
	Email   string // of the user who has signed in
	Notice  string // what has just been done, for the live region
	Now     string // when the page was made, RFC 3339
}

// Templates are the parsed screens. They are safe for concurrent use.
type Templates struct {
	screens   map[string]*template.Template // by file
	fragments map[string]*template.Template // by name: the set that defines it
}

// New parses every screen. The templates find the address of the asset called
// name by assetURL. It errs when a template does not parse, or when two screens
// define a fragment of one name.
func New(assetURL func(name string) (string, error)) (*Templates, error) {
	base, err := template.New("").Funcs(template.FuncMap{"asset": assetURL}).ParseFS(files, shared...)
	if err != nil {
		return nil, fmt.Errorf("parse the shared templates: %w", err)
	}
	t := &Templates{screens: map[string]*template.Template{}, fragments: map[string]*template.Template{}}
	for _, defined := range base.Templates() {
		t.fragments[defined.Name()] = base
	}
	for _, folder := range []string{"account", "activities", "agents", "api_keys", "errors", "integration", "rotations", "sessions"} {
		names, err := fs.Glob(files, folder+"/*.html")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := t.add(base, name); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

func (t *Templates) add(base *template.Template, name string) error {
	set, err := base.Clone()
	if err != nil {
		return fmt.Errorf("parse %s: %w", name, err)
	}
	if set, err = set.ParseFS(files, name); err != nil {
		return fmt.Errorf("parse %s: %w", name, err)
	}
	t.screens[name] = set
	for _, defined := range set.Templates() {
		switch fragment := defined.Name(); {
		case base.Lookup(fragment) != nil, fragment == "title", fragment == "content", fragment == path.Base(name):
		case t.fragments[fragment] != nil:
			return fmt.Errorf("%s: there is another template %q", name, fragment)
		default:
			t.fragments[fragment] = set
		}
	}
	return nil
}

// Page renders a page within its layout.
func (t *Templates) Page(frame Frame, page Page) ([]byte, error) {
	s := page.screen()
	set, ok := t.screens[s.file]
	if !ok {
		return nil, fmt.Errorf("there is no screen %s", s.file)
	}
	layout := s.layout
	switch {
	case layout != "":
	case frame.Account != "":
		layout = layoutPortal
	default:
		layout = layoutPlain
	}
	return execute(set, layout, struct {
		Frame
		Section Section
		Page    Page
	}{frame, s.section, page})
}

// Fragment renders a fragment, and with it the notice if there is one.
func (t *Templates) Fragment(fragment Fragment, notice string) ([]byte, error) {
	set, ok := t.fragments[fragment.fragment()]
	if !ok {
		return nil, fmt.Errorf("there is no fragment %q", fragment.fragment())
	}
	html, err := execute(set, fragment.fragment(), fragment)
	if err != nil || notice == "" {
		return html, err
	}
	told, err := execute(set, "notice", notice)
	return append(html, told...), err
}

func execute(set *template.Template, name string, data any) ([]byte, error) {
	var buffer bytes.Buffer
	if err := set.ExecuteTemplate(&buffer, name, data); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	return buffer.Bytes(), nil
}
