package templates

import (
	"embed"
	"strings"

	"portal/models"
)

// The examples are files of a customer's code. TOKEN_URL, AGENT_ID and BASE_URL are placeholders.
//
//go:embed documentation/snippets/* integration/snippets/* integration/reference/*
var exampleFiles embed.FS

// newExample returns the snippet of one of the files.
func newExample(id, name, language, file string, fill *strings.Replacer) Snippet {
	source, err := exampleFiles.ReadFile(file)
	if err != nil {
		panic(err) // the names are constants
	}
	return NewSnippet(id, name, language, string(source), fill)
}

// IntegrationPage is /integrate.
type IntegrationPage struct {
	Agents []models.Agent // sorted by name; may be empty
	Agent  models.Agent   // in the examples; zero if there is none
	Examples
}

func (IntegrationPage) screen() screen {
	return screen{file: "integration/show.html", section: SectionIntegrate}
}

func (IntegrationPage) fragment() string { return "integration" }

// Examples are the code examples for customers.
type Examples struct {
	Environment Snippet
	Servers     Alternatives // the same server in several languages
	Browser     Snippet
	Reference   []ExampleFile // a page with a voice widget, and the same backend for it in several languages
}

// ExampleFile is a complete file for customers. Pages fold it, because it is long.
type ExampleFile struct {
	File  string // name
	About string // one phrase
	Snippet
}

// Alternatives are examples that do the same. The reader chooses one.
type Alternatives struct {
	Legend   string // of the choice
	Name     string // of the radio buttons
	Snippets []Snippet
}

// NewExamples returns the examples with tokenURL and agentID filled in. An empty agentID leaves the
// placeholder.
func NewExamples(tokenURL, agentID string) Examples {
	words := []string{"TOKEN_URL", tokenURL}
	if agentID != "" {
		words = append(words, "AGENT_ID", agentID)
	}
	fill := strings.NewReplacer(words...)
	snippet := func(id, name, language, file string) Snippet {
		return newExample(id, name, language, "integration/snippets/"+file, fill)
	}
	complete := func(file, name, about, id, language string) ExampleFile {
		return ExampleFile{strings.TrimSuffix(file, ".txt"), about, newExample(id, name, language, "integration/reference/"+file, fill)}
	}
	return Examples{
		Environment: snippet("environment", "Terminal", "bash", "environment.sh"),
		Servers: Alternatives{"Language", "language", []Snippet{
			snippet("curl", "curl", "bash", "widget_token.sh"),
			snippet("go", "Go", "go", "server.go.txt"),
			snippet("node", "Node", "javascript", "server.mjs"),
			snippet("python", "Python", "python", "server.py"),
		}},
		Browser: snippet("browser", "Browser", "javascript", "browser.js"),
		Reference: []ExampleFile{
			complete("widget.html", "Widget page", "the page", "widget-page", "html"),
			complete("backend.go.txt", "Go backend", "Go", "backend-go", "go"),
			complete("backend.mjs", "Node backend", "Node 20 or later", "backend-node", "javascript"),
			complete("backend.py", "Python backend", "Python 3.11 or later", "backend-python", "python"),
		},
	}
}
