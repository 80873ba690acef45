package templates

import (
	_ "embed" // the examples
	"strings"

	"github.com/google/uuid"
)

// Each example is a file of a customer's code with two placeholders: TOKEN_URL and AGENT_ID.
var (
	//go:embed integration/snippets/environment.sh
	environmentSnippet string
	//go:embed integration/snippets/widget_token.sh
	curlSnippet string
	//go:embed integration/snippets/server.go.txt
	goSnippet string
	//go:embed integration/snippets/server.mjs
	nodeSnippet string
	//go:embed integration/snippets/server.py
	pythonSnippet string
	//go:embed integration/snippets/browser.js
	browserSnippet string
)

// IntegrationPage is /integrate.
type IntegrationPage struct {
	Agents []AgentChoice // sorted by name; may be empty
	Agent  string        // name of the agent in the examples; empty if there is none
	Examples
}

func (IntegrationPage) screen() screen {
	return screen{file: "integration/show.html", layout: layoutPortal, section: SectionIntegrate}
}

func (IntegrationPage) fragment() string { return "integration" }

// AgentChoice is one option of the agent select.
type AgentChoice struct {
	ID     uuid.UUID
	Name   string
	Chosen bool
}

// Examples are the code examples for customers.
type Examples struct {
	Environment Snippet
	Servers     Alternatives // the same server in several languages
	Browser     Snippet
	Reference   []ExampleFile // a page with a voice widget and its backend
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
	snippet := func(id, name, language, code string) Snippet {
		return NewSnippet(id, name, language, code, fill)
	}
	return Examples{
		Environment: snippet("environment", "Terminal", "bash", environmentSnippet),
		Servers: Alternatives{"Language", "language", []Snippet{
			snippet("curl", "curl", "bash", curlSnippet),
			snippet("go", "Go", "go", goSnippet),
			snippet("node", "Node", "javascript", nodeSnippet),
			snippet("python", "Python", "python", pythonSnippet),
		}},
		Browser:   snippet("browser", "Browser", "javascript", browserSnippet),
		Reference: newReference(fill),
	}
}
