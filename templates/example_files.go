package templates

import (
	_ "embed" // the files
	"strings"
)

// Each file is complete. TOKEN_URL, AGENT_ID and BASE_URL are placeholders.
var (
	//go:embed integration/reference/backend.go.txt
	goBackend string
	//go:embed integration/reference/backend.mjs
	nodeBackend string
	//go:embed integration/reference/backend.py
	pythonBackend string
	//go:embed integration/reference/widget.html
	widgetPage string
)

// ExampleFile is a complete file for customers. Pages fold it, because it is long.
type ExampleFile struct {
	File  string // name
	About string // one phrase
	Snippet
}

// newReference returns a page with a voice widget, and the same backend for it in several
// languages.
func newReference(fill *strings.Replacer) []ExampleFile {
	file := func(name, title, about, id, language, code string) ExampleFile {
		return ExampleFile{name, about, NewSnippet(id, title, language, code, fill)}
	}
	return []ExampleFile{
		file("widget.html", "Widget page", "the page", "widget-page", "html", widgetPage),
		file("backend.go", "Go backend", "Go", "backend-go", "go", goBackend),
		file("backend.mjs", "Node backend", "Node 20 or later", "backend-node", "javascript", nodeBackend),
		file("backend.py", "Python backend", "Python 3.11 or later", "backend-python", "python", pythonBackend),
	}
}
