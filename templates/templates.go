// Package templates holds the screens of the portal and their typed data. A screen is one file,
// which defines its title, its content, and the fragments of its content. A page is a screen inside
// a layout. A fragment is one part of a screen, so that the markup exists once.
//
// The package does not depend on net/http requests. It renders to a byte slice, so that nothing is
// sent if a template fails.
package templates

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/unicode/bidi"
)

// The patterns name the files, because embedding a folder silently omits files that begin with "_"
// or ".".
//
//go:embed layouts/*.html partials/*.html
//go:embed account/*.html activities/*.html agents/*.html api_keys/*.html
//go:embed calls/*.html documentation/*.html
//go:embed errors/*.html identities/*.html integration/*.html
//go:embed password_resets/*.html people/*.html
//go:embed rotations/*.html settings/*.html sign_in/*.html usage/*.html webhooks/*.html
var files embed.FS

// isShared reports whether every screen can use the templates of a file.
func isShared(name string) bool {
	return strings.HasPrefix(name, "layouts/") || strings.HasPrefix(name, "partials/")
}

// Page is the data of a screen.
type Page interface{ screen() screen }

// Fragment is the data of one or more elements of a screen.
type Fragment interface{ fragment() string }

// screen names the file of a page, its layout and its section.
type screen struct {
	file    string
	layout  string
	section Section // the current entry of the navigation
	refresh string  // URL that replaces the page after a while without JavaScript; empty: none
}

// The layouts. A screen that names none gets layoutPortal if the user is signed in, otherwise
// layoutPlain.
const (
	layoutPortal        = "portal"
	layoutPlain         = "plain"
	layoutDocumentation = "documentation"
)

// Section is an entry of the navigation.
type Section string

// The sections.
const (
	SectionAPIKeys   Section = "api-keys"
	SectionAgents    Section = "agents"
	SectionCalls     Section = "calls"
	SectionUsage     Section = "usage"
	SectionIntegrate Section = "integrate"
	SectionActivity  Section = "activity"
	SectionPeople    Section = "people"
	SectionAccount   Section = "account"  // a link beside the navigation
	SectionSettings  Section = "settings" // likewise, for owners

	SectionAPI       Section = "api"
	SectionGateway   Section = "gateway"
	SectionOperate   Section = "operate"
	SectionChangelog Section = "changelog"
)

// Brand is what a platform sets to make the pages look like its own. Each field may be empty.
type Brand struct {
	Logo, LogoType string // URL and content type
	Accent         string // URL of the style sheet
	HomeURL        string // of the platform
}

// Frame is the data of the layout.
type Frame struct {
	Brand

	Product string // name of the product
	Account string // name of the account; empty for a visitor
	User    string // id of the signed-in user
	Email   string // of that user
	Owner   bool   // the user may change the account's settings
	Voice   bool   // the portal has a LiveKit server, so the navigation leads to calls
	Notice  string // message for the live region
	Support string // URL of the support; may be empty
	// OperatorNotice stands above the page, such as for maintenance; may be empty.
	OperatorNotice string
	Now            string // server time, RFC 3339
}

// Templates holds the screens. It is safe for concurrent use.
type Templates struct {
	screens   map[string]parser // by file
	fragments map[string]parser // by name, of the set that defines the fragment
}

// parser returns a set of templates, which it parses at the first call, because parsing all screens
// would take half of the program's start.
type parser func() (*template.Template, error)

// New lists the screens, whose template function "asset" calls assetURL. If two screens define the
// same fragment, New returns an error.
func New(assetURL func(name string) (string, error)) (*Templates, error) {
	names, err := fs.Glob(files, "*/*.html")
	if err != nil {
		return nil, err
	}
	// The base is never executed, because a set cannot be cloned after that.
	base := sync.OnceValues(func() (*template.Template, error) {
		set := template.New("").Funcs(template.FuncMap{"asset": assetURL})
		for _, name := range names {
			if !isShared(name) {
				continue
			}
			if err := parse(set, name); err != nil {
				return nil, err
			}
		}
		return set, parseIcons(set)
	})
	shared := sync.OnceValues(func() (*template.Template, error) { return clone(base) })
	t := &Templates{screens: map[string]parser{}, fragments: map[string]parser{}}
	for _, name := range names {
		set := shared
		if !isShared(name) {
			set = sync.OnceValues(func() (*template.Template, error) {
				set, err := clone(base)
				if err == nil {
					err = parse(set, name)
				}
				return set, err
			})
			t.screens[name] = set
		}
		if err := t.addFragments(name, set); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func clone(base parser) (*template.Template, error) {
	set, err := base()
	if err != nil {
		return nil, err
	}
	return set.Clone()
}

// definition matches the start of a fragment.
var definition = regexp.MustCompile(`\{\{define "([^"]+)"`)

func (t *Templates) addFragments(name string, set parser) error {
	text, err := files.ReadFile(name)
	if err != nil {
		return err
	}
	for _, match := range definition.FindAllSubmatch(text, -1) {
		fragment := string(match[1])
		if fragment == "title" || fragment == "content" {
			continue
		}
		if t.fragments[fragment] != nil {
			return fmt.Errorf("%s: template %q is defined twice", name, fragment)
		}
		t.fragments[fragment] = set
	}
	return nil
}

// indentation matches the space before a tag or an action at the start of a line.
var indentation = regexp.MustCompile(`(?m)^[ \t]+(<|\{\{)`)

// parse adds a file to the set. Because responses that show a key are not compressed, parse removes
// the file's indentation.
func parse(set *template.Template, name string) error {
	text, err := files.ReadFile(name)
	if err != nil {
		return err
	}
	if _, err := set.New(path.Base(name)).Parse(indentation.ReplaceAllString(string(text), "$1")); err != nil {
		return fmt.Errorf("parse %s: %w", name, err)
	}
	return nil
}

// parseIcons adds the template "icon", which shows the icon with a name. A template cannot execute
// another one whose name it computes.
func parseIcons(set *template.Template) error {
	var choice strings.Builder
	for _, icon := range set.Templates() {
		if name, ok := strings.CutPrefix(icon.Name(), "icon-"); ok {
			fmt.Fprintf(&choice, `{{if eq . %q}}{{template %q}}{{end}}`, name, icon.Name())
		}
	}
	_, err := set.New("icon").Parse(choice.String())
	return err
}

// Page renders a page inside its layout.
func (t *Templates) Page(frame Frame, page Page) ([]byte, error) {
	s := page.screen()
	parse, ok := t.screens[s.file]
	if !ok {
		return nil, fmt.Errorf("no screen %s", s.file)
	}
	set, err := parse()
	if err != nil {
		return nil, err
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
		Refresh string
	}{Frame: frame, Section: s.section, Page: page, Refresh: s.refresh})
}

// Fragment renders a fragment, followed by the notice if it is not empty.
func (t *Templates) Fragment(fragment Fragment, notice string) ([]byte, error) {
	parse, ok := t.fragments[fragment.fragment()]
	if !ok {
		return nil, fmt.Errorf("no fragment %q", fragment.fragment())
	}
	set, err := parse()
	if err != nil {
		return nil, err
	}
	html, err := execute(set, fragment.fragment(), fragment)
	if err != nil || notice == "" {
		return html, err
	}
	status, err := execute(set, "notice", notice)
	return append(html, status...), err
}

// buffers holds buffers for reuse, because a page may need hundreds of kilobytes.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func execute(set *template.Template, name string, data any) ([]byte, error) {
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	if err := set.ExecuteTemplate(buffer, name, data); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	return bytes.Clone(buffer.Bytes()), nil
}

// Isolate returns a name for a sentence of plain text. A name with characters that are written from
// right to left would otherwise change the order of the digits and the punctuation beside it.
// Markup has the element bdi.
func Isolate(name string) string {
	rightToLeft := func(r rune) bool {
		properties, _ := bidi.LookupRune(r)
		return slices.Contains([]bidi.Class{bidi.R, bidi.AL, bidi.AN}, properties.Class())
	}
	if strings.ContainsFunc(name, rightToLeft) {
		return "\u2068" + name + "\u2069" // FIRST STRONG ISOLATE, POP DIRECTIONAL ISOLATE
	}
	return name
}
