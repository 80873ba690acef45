package templates

import (
	"embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// Snippet is one example of code.
type Snippet struct {
	ID       string // unique within the page
	Name     string // of the language, for the reader
	Language string // for the highlighter
	Source   string // the code with placeholders

	fill *strings.Replacer // replaces the placeholders
}

// NewSnippet returns a snippet, in which fill replaces the placeholders of source.
func NewSnippet(id, name, language, source string, fill *strings.Replacer) Snippet {
	return Snippet{ID: id, Name: name, Language: language, Source: strings.TrimSuffix(source, "\n"), fill: fill}
}

// Code returns the code for the reader.
func (s Snippet) Code() string { return s.fill.Replace(s.Source) }

// Token is a piece of source code of one kind.
type Token struct {
	Class string `json:"c,omitempty"` // CSS class of the color; empty: the color of text
	Text  string `json:"t"`
}

// Tokens returns the code in tokens with colors. Code that was not highlighted when the program was
// built is one token.
func (s Snippet) Tokens() []Token {
	tokens := slices.Clone(highlighted()[s.Source])
	if tokens == nil {
		tokens = []Token{{Text: s.Source}}
	}
	for i := range tokens {
		tokens[i].Text = s.fill.Replace(tokens[i].Text)
	}
	return tokens
}

// The folder has only .gitignore until cmd/highlight has run, which imports this package.
//
//go:embed all:highlighted
var highlightedFiles embed.FS

// highlighted returns the tokens of each source, as written by cmd/highlight.
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
