package templates

import (
	"cmp"
	"embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"portal/models/agents"
)

// Snippet is one example of code.
type Snippet struct {
	ID       string // unique within the page
	Name     string // of the language, for the reader
	Language string // for the highlighter
	Raw      string // the code with placeholders

	fill  *strings.Replacer // replaces the placeholders
	agent *strings.Replacer // names an agent; nil: the placeholder or the example's own
}

// NewSnippet returns a snippet, in which fill replaces the placeholders of raw.
func NewSnippet(id, name, language, raw string, fill *strings.Replacer) Snippet {
	return Snippet{ID: id, Name: name, Language: language, Raw: strings.TrimSuffix(raw, "\n"), fill: fill}
}

// Code returns the code for the reader.
func (s Snippet) Code() string { return s.filled(s.Raw) }

func (s Snippet) filled(text string) string {
	if text = s.fill.Replace(text); s.agent != nil {
		text = s.agent.Replace(text)
	}
	return text
}

// exampleAgent is the agent in the requests of the OpenAPI document.
const exampleAgent = "0198c2f4-7a31-7c6e-9d52-3f8be6a1c004"

// of returns the snippet with the id of an agent in it.
func (s Snippet) of(agentID string) Snippet {
	s.agent = strings.NewReplacer("AGENT_ID", agentID, exampleAgent, agentID)
	return s
}

// Token is a piece of source code of one kind.
type Token struct {
	Class string `json:"c,omitempty"` // CSS class of the color; empty: the color of text
	Text  string `json:"t"`
}

// Tokens returns the code in tokens with colors. Code that was not highlighted when the program was
// built is one token.
func (s Snippet) Tokens() []Token {
	tokens := slices.Clone(highlighted()[s.Raw])
	if tokens == nil {
		tokens = []Token{{Text: s.Raw}}
	}
	for i := range tokens {
		tokens[i].Text = s.filled(tokens[i].Text)
	}
	return tokens
}

// The folder has only .gitignore until cmd/highlight has run, which imports this package.
//
//go:embed all:highlighted
var highlightedFiles embed.FS

// highlighted returns the tokens of each snippet, as written by cmd/highlight.
var highlighted = sync.OnceValue(func() (tokens map[string][]Token) {
	content, err := highlightedFiles.ReadFile("highlighted/tokens.json")
	if err == nil {
		err = json.Unmarshal(content, &tokens)
	}
	if err != nil {
		return nil
	}
	return tokens
})

// The examples are files of a customer's code. TOKEN_URL, AGENT_ID and BASE_URL are placeholders.
//
//go:embed documentation/snippets/* integration/snippets/* integration/reference/*
var exampleFiles embed.FS

// newExample returns the snippet of one of the files.
func newExample(id, name, language, file string, fill *strings.Replacer) Snippet {
	raw, err := exampleFiles.ReadFile(file)
	if err != nil {
		panic(err) // the names are constants
	}
	return NewSnippet(id, name, language, string(raw), fill)
}

// IntegrationPage is /integrate.
type IntegrationPage struct {
	Support string // URL of the support; may be empty

	Agents   []agents.Agent // sorted by name; may be empty
	Agent    agents.Agent   // in the examples; zero if there is none
	Voice    bool           // the portal has a LiveKit server
	Webhooks bool           // accounts can have webhooks
	Prompt   string         // for a coding agent
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
	// A page with a voice widget, and the same backend for it in several languages.
	Reference []ExampleFile
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
		return ExampleFile{File: strings.TrimSuffix(file, ".txt"), About: about, Snippet: newExample(id, name, language, "integration/reference/"+file, fill)}
	}
	return Examples{
		Environment: snippet("environment", "Terminal", "bash", "environment.sh"),
		Servers: Alternatives{Legend: "Language", Name: "language", Snippets: []Snippet{
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

// NewPrompt returns a prompt with which a coding agent writes a backend. An empty agentID leaves
// the placeholder.
func NewPrompt(baseURL, agentID string) string {
	fill := strings.NewReplacer("BASE_URL", strings.TrimSuffix(baseURL, "/"), "AGENT_ID", cmp.Or(agentID, "AGENT_ID"))
	return newExample("prompt", "Prompt", "text", "integration/snippets/prompt.txt", fill).Code()
}

// Guides are the examples of the guides.
type Guides struct {
	BaseURL  string
	AgentID  string // in the examples; empty: a placeholder
	Examples        // of the quick start

	Agents     Snippet
	Context    Snippet
	LiveKit    Alternatives
	Verify     Alternatives
	Renew      Snippet
	TokenCache Snippet
	Introspect Snippet
	Retry      Snippet
	Export     Snippet
	Webhooks   Alternatives
	Scanners   Alternatives
	Gateways   Alternatives
	Runtime    ExampleFile

	Unauthorized []ErrorMessage // each way to get a 401
	Rate, Burst  int            // requests a second and burst of one key; 0: no limit
}

// exchangePath is where a backend exchanges its key for a widget token.
const exchangePath = "/api/widget/token"

// NewGuides returns the guides for the portal at baseURL, to which the caller adds the messages.
func NewGuides(baseURL string) Guides {
	baseURL = strings.TrimSuffix(baseURL, "/")
	fill := strings.NewReplacer("BASE_URL", baseURL)
	snippet := func(id, name, language, file string) Snippet {
		return newExample(id, name, language, "documentation/snippets/"+file, fill)
	}
	return Guides{
		BaseURL:  baseURL,
		Examples: NewExamples(baseURL+exchangePath, ""),
		Agents:   snippet("agents", "List agents", "bash", "agents.sh"),
		Context:  snippet("context", "A token for a user", "bash", "context.sh"),
		LiveKit: Alternatives{Legend: "LiveKit’s SDK for", Name: "livekit", Snippets: []Snippet{
			snippet("livekit-react", "React", "jsx", "livekit_react.jsx"),
			snippet("livekit-swift", "Swift", "swift", "livekit.swift"),
			snippet("livekit-android", "Android", "kotlin", "livekit.kt"),
			snippet("livekit-flutter", "Flutter", "dart", "livekit.dart"),
		}},
		Verify: Alternatives{Legend: "Verify with", Name: "verify", Snippets: []Snippet{
			snippet("verify-node", "Verify with Node", "javascript", "verify.mjs"),
			snippet("verify-go", "Verify with Go", "go", "verify.go.txt"),
			snippet("verify-python", "Verify with Python", "python", "verify.py"),
			snippet("verify-browser", "Verify in a browser", "javascript", "verify_browser.js"),
		}},
		Renew:      snippet("renew", "Renew in a browser", "javascript", "renew.js"),
		TokenCache: snippet("token-cache", "Cache for each user", "javascript", "token_cache.mjs"),
		Introspect: snippet("introspect", "Introspect", "bash", "introspect.sh"),
		Retry:      snippet("retry", "Retry", "javascript", "retry.mjs"),
		Export:     snippet("export", "Export activities", "python", "export.py"),
		Webhooks: Alternatives{Legend: "Receive with", Name: "webhook", Snippets: []Snippet{
			snippet("webhook-go", "Receive with Go", "go", "webhook.go.txt"),
			snippet("webhook-node", "Receive with Node", "javascript", "webhook.mjs"),
			snippet("webhook-python", "Receive with Python", "python", "webhook.py"),
		}},
		Scanners: Alternatives{Legend: "Scan with", Name: "scan", Snippets: []Snippet{
			snippet("gitleaks", "gitleaks", "toml", "gitleaks.toml"),
			snippet("trufflehog", "trufflehog", "yaml", "trufflehog.yaml"),
		}},
		Gateways: Alternatives{Legend: "Gateway", Name: "gateway", Snippets: []Snippet{
			snippet("nginx", "nginx", "nginx", "nginx.conf"),
			snippet("caddy", "Caddy", "caddyfile", "Caddyfile"),
		}},
		Runtime: ExampleFile{File: "runtime.go", About: "Go", Snippet: snippet("runtime", "Voice runtime", "go", "runtime.go.txt")},
	}
}

// Snippets returns all examples.
func (p Guides) Snippets() []Snippet {
	all := []Snippet{p.Environment, p.Browser, p.Agents, p.Context, p.Renew, p.TokenCache, p.Introspect, p.Retry, p.Export, p.Runtime.Snippet}
	for _, file := range p.Reference {
		all = append(all, file.Snippet)
	}
	return slices.Concat(all, p.Servers.Snippets, p.LiveKit.Snippets, p.Verify.Snippets, p.Webhooks.Snippets, p.Scanners.Snippets, p.Gateways.Snippets)
}

// GuideSection is the heading of a guide, with the id that the template of its page uses.
type GuideSection struct{ ID, Name string }
