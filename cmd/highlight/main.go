// Command highlight colors the code examples of the pages when the portal is built. Run at the root
// of the repository, it writes the file that package templates embeds, so that the lexers are not a
// part of the program.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"

	"portal/handlers/portal/reference"
	"portal/templates"
)

const output = "templates/highlighted/tokens.json"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "highlight:", err)
		os.Exit(1)
	}
}

func run() error {
	openapi, err := os.ReadFile("handlers/api/openapi.json")
	if err != nil {
		return err
	}
	page, err := reference.New(openapi, "")
	if err != nil {
		return err
	}
	tokens := map[string][]templates.Token{}
	snippets := slices.Concat(page.Snippets(), templates.NewGuides("").Snippets())
	for _, guide := range templates.NewWorkloadGuides("") {
		snippets = append(snippets, guide.Snippets...)
	}
	for _, snippet := range snippets {
		if tokens[snippet.Raw], err = highlight(snippet.Language, snippet.Raw); err != nil {
			return fmt.Errorf("%s: %w", snippet.ID, err)
		}
	}
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(tokens); err != nil {
		return err
	}
	return os.WriteFile(output, content.Bytes(), 0o600)
}

// highlight splits code into tokens. Joined, their texts equal code.
func highlight(language, code string) ([]templates.Token, error) {
	lexer := lexers.Get(language)
	if lexer == nil {
		return nil, fmt.Errorf("unknown language %q", language)
	}
	iterator, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, code)
	if err != nil {
		return nil, err
	}
	var tokens []templates.Token
	for token := range iterator.Stdlib() {
		class := classOf(token.Type)
		if last := len(tokens) - 1; last >= 0 && tokens[last].Class == class {
			tokens[last].Text += token.Value
			continue
		}
		tokens = append(tokens, templates.Token{Class: class, Text: token.Value})
	}
	return tokens, nil
}

// classOf returns the class of a type. Types that look alike share one, which keeps pages small.
func classOf(kind chroma.TokenType) string {
	switch {
	case kind.InCategory(chroma.Comment):
		return "c"
	case kind.InSubCategory(chroma.LiteralString):
		return "s"
	case kind.InCategory(chroma.Literal), kind == chroma.KeywordConstant:
		return "n"
	case kind.InCategory(chroma.Keyword), kind == chroma.OperatorWord:
		return "k"
	case kind == chroma.NameTag, kind == chroma.NameFunction, kind == chroma.NameBuiltin, kind == chroma.NameClass:
		return "f"
	case kind == chroma.NameVariable:
		return "v"
	}
	return ""
}
