package templates

import (
	"slices"
	"strings"
)

// Guides are the examples of the guides.
type Guides struct {
	BaseURL  string
	Examples // of the quick start

	Agents     Snippet
	Context    Snippet
	LiveKit    Alternatives
	Verify     Alternatives
	Renew      Snippet
	TokenCache Snippet
	Introspect Snippet
	Retry      Snippet
	Scanners   Alternatives
	Gateways   Alternatives
	Runtime    ExampleFile

	Unauthorized []ErrorMessage // each way to get a 401
}

// NewGuides returns the guides for the portal at baseURL, to which the caller adds the messages.
func NewGuides(baseURL string) Guides {
	baseURL = strings.TrimSuffix(baseURL, "/")
	fill := strings.NewReplacer("BASE_URL", baseURL)
	snippet := func(id, name, language, file string) Snippet {
		return newExample(id, name, language, "documentation/snippets/"+file, fill)
	}
	return Guides{
		BaseURL:  baseURL,
		Examples: NewExamples(baseURL+"/api/widget/token", ""),
		Agents:   snippet("agents", "List agents", "bash", "agents.sh"),
		Context:  snippet("context", "A token for a user", "bash", "context.sh"),
		LiveKit: Alternatives{"LiveKit’s SDK for", "livekit", []Snippet{
			snippet("livekit-react", "React", "jsx", "livekit_react.jsx"),
			snippet("livekit-swift", "Swift", "swift", "livekit.swift"),
			snippet("livekit-android", "Android", "kotlin", "livekit.kt"),
			snippet("livekit-flutter", "Flutter", "dart", "livekit.dart"),
		}},
		Verify: Alternatives{"Verify with", "verify", []Snippet{
			snippet("verify-node", "Verify with Node", "javascript", "verify.mjs"),
			snippet("verify-go", "Verify with Go", "go", "verify.go.txt"),
			snippet("verify-python", "Verify with Python", "python", "verify.py"),
			snippet("verify-browser", "Verify in a browser", "javascript", "verify_browser.js"),
		}},
		Renew:      snippet("renew", "Renew in a browser", "javascript", "renew.js"),
		TokenCache: snippet("token-cache", "Cache for each user", "javascript", "token_cache.mjs"),
		Introspect: snippet("introspect", "Introspect", "bash", "introspect.sh"),
		Retry:      snippet("retry", "Retry", "javascript", "retry.mjs"),
		Scanners: Alternatives{"Scan with", "scan", []Snippet{
			snippet("gitleaks", "gitleaks", "toml", "gitleaks.toml"),
			snippet("trufflehog", "trufflehog", "yaml", "trufflehog.yaml"),
		}},
		Gateways: Alternatives{"Gateway", "gateway", []Snippet{
			snippet("nginx", "nginx", "nginx", "nginx.conf"),
			snippet("caddy", "Caddy", "caddyfile", "Caddyfile"),
		}},
		Runtime: ExampleFile{"runtime.go", "Go", snippet("runtime", "Voice runtime", "go", "runtime.go.txt")},
	}
}

// Snippets returns all examples.
func (p Guides) Snippets() []Snippet {
	all := []Snippet{p.Environment, p.Browser, p.Agents, p.Context, p.Renew, p.TokenCache, p.Introspect, p.Retry, p.Runtime.Snippet}
	for _, file := range p.Reference {
		all = append(all, file.Snippet)
	}
	return slices.Concat(all, p.Servers.Snippets, p.LiveKit.Snippets, p.Verify.Snippets, p.Scanners.Snippets, p.Gateways.Snippets)
}

// GuideSection is the heading of a guide, with the id that the template of its page uses.
type GuideSection struct{ ID, Name string }
