package portal

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"portal/templates"
)

const (
	searchPath = docsPath + "/search"
	maxQuery   = 100 // characters
	maxFound   = 20  // sections
	excerpt    = 160 // characters, about
)

// section is a part of a page about the API.
type section struct {
	page, path, id string
	heading, text  string
}

// sections returns the sections of the pages, which have an id and a heading.
func (p *documents) sections(pages []templates.DocumentationPage) (all []section, err error) {
	for _, page := range pages {
		text, err := p.templates.Page(templates.Frame{Product: p.product}, page)
		if err != nil {
			return nil, err
		}
		root, err := html.Parse(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		for node := range root.Descendants() {
			if id := idOfSection(node); id != "" {
				found := section{page: page.Title, path: page.Path, id: id}
				found.read(node)
				all = append(all, found)
			}
		}
	}
	return all, nil
}

// idOfSection returns the id of a node that is a section, or "".
func idOfSection(node *html.Node) string {
	if node.DataAtom != atom.Section && node.DataAtom != atom.Article {
		return ""
	}
	for _, a := range node.Attr {
		if a.Key == "id" {
			return a.Val
		}
	}
	return ""
}

// read reads the heading and the words of a section, without those of the sections in it.
func (s *section) read(node *html.Node) {
	for child := range node.ChildNodes() {
		switch {
		case child.Type == html.TextNode:
			s.text += child.Data
		case s.heading == "" && (child.DataAtom == atom.H2 || child.DataAtom == atom.H3):
			inner := section{heading: "-"}
			inner.read(child)
			s.heading = strings.Join(strings.Fields(inner.text), " ")
		case idOfSection(child) == "":
			s.text += " "
			s.read(child)
		}
	}
}

// search shows the sections of the pages about the API that have all words of the query.
func (p *documents) search(c *gin.Context) error {
	all, err := p.documentation()
	if err != nil {
		return err
	}
	sections, err := all.sections()
	if err != nil {
		return err
	}
	page := all.search
	page.Query = strings.ToValidUTF8(strings.TrimSpace(c.Query("q")), "")
	if utf8.RuneCountInString(page.Query) > maxQuery {
		page.Query = string([]rune(page.Query)[:maxQuery])
	}
	page.Found = find(sections, page.Query)
	return p.sendPage(c, http.StatusOK, page)
}

// find returns the sections with all words, first those with all of them in their heading.
func find(sections []section, query string) (found []templates.DocumentationResult) {
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 0 {
		return nil
	}
	has := func(text string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(strings.ToLower(text), word) })
	}
	var others []templates.DocumentationResult
	for _, s := range sections {
		result := templates.DocumentationResult{Page: s.page, Heading: s.heading, URL: s.path + "#" + s.id, Excerpt: s.excerpt(words[0])}
		switch {
		case has(s.heading):
			found = append(found, result)
		case has(s.heading + " " + s.text):
			others = append(others, result)
		}
	}
	found = append(found, others...)
	return found[:min(len(found), maxFound)]
}

// excerpt returns the words around the first occurrence of a word.
func (s *section) excerpt(word string) string {
	fields := strings.Fields(s.text)
	at := max(0, slices.IndexFunc(fields, func(field string) bool { return strings.Contains(strings.ToLower(field), word) }))
	text := ""
	for _, field := range fields[max(0, at-8):] {
		if len(text)+len(field) > excerpt {
			return text + " …"
		}
		text = strings.TrimSpace(text + " " + field)
	}
	return text
}
