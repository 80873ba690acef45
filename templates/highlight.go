package templates

import (
	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// Token is a piece of source code of one kind.
type Token struct {
	Class string // CSS class of the color; empty: the color of text
	Text  string
}

// highlight splits code into tokens. Joined, their texts equal code. Code in an unknown language is
// one token.
func highlight(language, code string) []Token {
	lexer := lexers.Get(language)
	if lexer == nil {
		return []Token{{Text: code}}
	}
	iterator, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, code)
	if err != nil {
		return []Token{{Text: code}}
	}
	var tokens []Token
	for token := range iterator.Stdlib() {
		class := classOf(token.Type)
		if last := len(tokens) - 1; last >= 0 && tokens[last].Class == class {
			tokens[last].Text += token.Value
			continue
		}
		tokens = append(tokens, Token{class, token.Value})
	}
	return tokens
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
