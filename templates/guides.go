package templates

import (
	_ "embed" // the examples
	"slices"
	"strings"
)

// Each example is a file of a customer's code in which BASE_URL stands for the portal's URL.
var (
	//go:embed documentation/snippets/agents.sh
	agentsSnippet string
	//go:embed documentation/snippets/verify.mjs
	verifyNodeSnippet string
	//go:embed documentation/snippets/verify.go.txt
	verifyGoSnippet string
	//go:embed documentation/snippets/verify.py
	verifyPythonSnippet string
	//go:embed documentation/snippets/verify_browser.js
	verifyBrowserSnippet string
	//go:embed documentation/snippets/renew.js
	renewSnippet string
	//go:embed documentation/snippets/token_cache.mjs
	tokenCacheSnippet string
	//go:embed documentation/snippets/introspect.sh
	introspectSnippet string
	//go:embed documentation/snippets/retry.mjs
	retrySnippet string
	//go:embed documentation/snippets/nginx.conf
	nginxSnippet string
	//go:embed documentation/snippets/Caddyfile
	caddySnippet string
	//go:embed documentation/snippets/runtime.go.txt
	runtimeSnippet string
)

// GuidesPage is /docs/guides.
type GuidesPage struct {
	Contents Contents
	BaseURL  string
	Examples // of the quick start

	Agents     Snippet
	Verify     Alternatives
	Renew      Snippet
	TokenCache Snippet
	Introspect Snippet
	Retry      Snippet
	Gateways   Alternatives
	Runtime    ExampleFile

	Unauthorized []ErrorMessage // each way to get a 401
}

func (GuidesPage) screen() screen { return documentationScreen("guides.html", SectionGuides) }

// NewGuidesPage returns the guides for the portal at baseURL. The caller adds the contents and the
// messages.
func NewGuidesPage(baseURL string) GuidesPage {
	baseURL = strings.TrimSuffix(baseURL, "/")
	fill := strings.NewReplacer("BASE_URL", baseURL)
	snippet := func(id, name, language, code string) Snippet {
		return NewSnippet(id, name, language, code, fill)
	}
	return GuidesPage{
		BaseURL:  baseURL,
		Examples: NewExamples(baseURL+"/api/widget/token", ""),
		Agents:   snippet("agents", "List agents", "bash", agentsSnippet),
		Verify: Alternatives{"Verify with", "verify", []Snippet{
			snippet("verify-node", "Verify with Node", "javascript", verifyNodeSnippet),
			snippet("verify-go", "Verify with Go", "go", verifyGoSnippet),
			snippet("verify-python", "Verify with Python", "python", verifyPythonSnippet),
			snippet("verify-browser", "Verify in a browser", "javascript", verifyBrowserSnippet),
		}},
		Renew:      snippet("renew", "Renew in a browser", "javascript", renewSnippet),
		TokenCache: snippet("token-cache", "Cache for each user", "javascript", tokenCacheSnippet),
		Introspect: snippet("introspect", "Introspect", "bash", introspectSnippet),
		Retry:      snippet("retry", "Retry", "javascript", retrySnippet),
		Gateways: Alternatives{"Gateway", "gateway", []Snippet{
			snippet("nginx", "nginx", "nginx", nginxSnippet),
			snippet("caddy", "Caddy", "caddyfile", caddySnippet),
		}},
		Runtime: ExampleFile{"runtime.go", "Go", snippet("runtime", "Voice runtime", "go", runtimeSnippet)},
	}
}

// Snippets returns all examples of the page.
func (p GuidesPage) Snippets() []Snippet {
	all := []Snippet{p.Environment, p.Browser, p.Agents, p.Renew, p.TokenCache, p.Introspect, p.Retry, p.Runtime.Snippet}
	for _, file := range p.Reference {
		all = append(all, file.Snippet)
	}
	return slices.Concat(all, p.Servers.Snippets, p.Verify.Snippets, p.Gateways.Snippets)
}

// GuideSection is the heading of a guide.
type GuideSection struct{ ID, Name string }

// GuideSections returns the guides in the order of the page. Its template uses the same ids.
func GuideSections() []GuideSection {
	return []GuideSection{
		{"quick-start", "From key to widget in five minutes"},
		{"widget", "Start from a complete widget"},
		{"verify", "Verify a widget token"},
		{"renew", "Renew early and cache"},
		{"introspection", "Introspect a token"},
		{"rate-limits", "Rate limits and backoff"},
		{"rotation", "Rotate a key"},
		{"gateways", "Authorize requests at a gateway"},
		{"runtime", "Run a voice runtime of your own"},
		{"unauthorized", "Handle each 401"},
	}
}
