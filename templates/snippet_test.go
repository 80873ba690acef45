package templates_test

import (
	"strings"
	"testing"

	"portal/templates"
)

func TestHighlightedCodeKeepsItsText(t *testing.T) {
	for _, snippet := range templates.NewGuides("https://portal.example.com").Snippets() {
		var text strings.Builder
		colored := 0
		for _, token := range snippet.Tokens() {
			text.WriteString(token.Text)
			if token.Class != "" {
				colored++
			}
		}
		if text.String() != snippet.Code() {
			t.Errorf("%s: the tokens are not the code:\n%s", snippet.ID, text.String())
		}
		if colored == 0 {
			t.Errorf("%s has no color: run make assets", snippet.ID)
		}
		if strings.Contains(snippet.Code(), "BASE_URL") || strings.Contains(snippet.Code(), "TOKEN_URL") {
			t.Errorf("%s has a placeholder", snippet.ID)
		}
	}
}

func TestUnknownCodeHasNoColors(t *testing.T) {
	snippet := templates.NewSnippet("x", "X", "bash", "a WORD b\n", strings.NewReplacer("WORD", "word"))
	if tokens := snippet.Tokens(); len(tokens) != 1 || tokens[0] != (templates.Token{Text: "a word b"}) {
		t.Errorf("tokens %+v", tokens)
	}
}
