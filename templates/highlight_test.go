package templates_test

import (
	"slices"
	"strings"
	"testing"

	"portal/templates"
)

func TestHighlightedCodeKeepsItsText(t *testing.T) {
	guides := templates.NewGuidesPage("https://portal.example.com")
	snippets := append([]templates.Snippet{guides.Environment, guides.Agents, guides.Browser, guides.Renew, guides.TokenCache, guides.Introspect, guides.Retry},
		slices.Concat(guides.Servers.Snippets, guides.Verify.Snippets, guides.Gateways.Snippets)...)
	for _, snippet := range snippets {
		var text strings.Builder
		colored := 0
		for _, token := range snippet.Tokens {
			text.WriteString(token.Text)
			if token.Class != "" {
				colored++
			}
		}
		if text.String() != snippet.Code {
			t.Errorf("%s: the tokens are not the code:\n%s", snippet.ID, text.String())
		}
		if colored == 0 {
			t.Errorf("%s has no color", snippet.ID)
		}
		if strings.Contains(snippet.Code, "BASE_URL") || strings.Contains(snippet.Code, "TOKEN_URL") {
			t.Errorf("%s has a placeholder", snippet.ID)
		}
	}
}

func TestUnknownLanguageHasNoColors(t *testing.T) {
	snippet := templates.NewSnippet("x", "X", "no such language", "a b\n")
	if len(snippet.Tokens) != 1 || snippet.Tokens[0] != (templates.Token{Text: "a b"}) {
		t.Errorf("tokens %+v", snippet.Tokens)
	}
}
