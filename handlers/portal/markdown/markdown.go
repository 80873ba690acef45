// Package markdown converts the documentation pages to Markdown: CommonMark with the tables of
// GitHub. It knows the elements that these pages use, and no others.
package markdown

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Convert returns the main element of a page as Markdown. It replaces the address of each link by
// what resolve returns for it. The code in a pre element stays as it is, without indentation.
// Controls and links with rel="alternate" are left out. If the page has no main element, or an
// element in it is unknown, Convert returns an error.
func Convert(page []byte, resolve func(address string) (string, error)) ([]byte, error) {
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return nil, err
	}
	for node := range root.Descendants() {
		if node.DataAtom == atom.Main {
			c := converter{resolve: resolve}
			blocks := c.blocks(node)
			// On a page the line for coding agents follows the heading.
			for i, block := range blocks {
				if strings.HasPrefix(block, forAgents) {
					blocks = slices.Concat([]string{block}, blocks[:i], blocks[i+1:])
					break
				}
			}
			return []byte(strings.Join(blocks, "\n\n") + "\n"), c.err
		}
	}
	return nil, errors.New("the page has no main element")
}

// forAgents begins the line that a text begins with.
const forAgents = "For coding agents: "

type converter struct {
	resolve func(string) (string, error)
	err     error // the first one
}

func (c *converter) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// blocks returns the blocks in an element: headings, paragraphs, lists, tables and code.
func (c *converter) blocks(parent *html.Node) []string {
	var blocks []string
	paragraph := "" // between two blocks
	flush := func() {
		if paragraph = strings.TrimSuffix(paragraph, " "); paragraph != "" {
			blocks = append(blocks, blockMark.ReplaceAllString(paragraph, `$1\$2 `))
		}
		paragraph = ""
	}
	for node := range parent.ChildNodes() {
		if found, ok := c.block(node); ok {
			flush()
			blocks = append(blocks, found...)
		} else {
			paragraph = join(paragraph, c.inline(node))
		}
	}
	flush()
	return blocks
}

// blockMark matches the beginning of a paragraph that looks like another kind of block.
var blockMark = regexp.MustCompile(`^(\d*)([-+#>.)]) `)

// block returns the blocks of an element, or false if it is a part of a paragraph.
func (c *converter) block(node *html.Node) ([]string, bool) {
	switch node.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5:
		return []string{strings.Repeat("#", int(node.Data[1]-'0')) + " " + c.line(node)}, true
	case atom.Pre:
		return []string{fence(node)}, true
	case atom.Ul, atom.Ol:
		return c.list(node), true
	case atom.Dl:
		return []string{strings.Join(c.fields(node, ""), "\n")}, true
	case atom.Table:
		return []string{c.table(node)}, true
	case atom.Summary:
		return []string{"**" + c.line(node) + "**"}, true
	case atom.Div:
		if attribute(node, "class") == "snippet-bar" {
			return []string{"**" + c.line(node) + "**"}, true
		}
		return c.blocks(node), true
	case atom.Form: // a search, for a browser
		return nil, true
	case atom.Header, atom.Section, atom.Article, atom.Details, atom.P:
		return c.blocks(node), true
	default:
		return nil, false
	}
}

// line returns the content of an element as one line.
func (c *converter) line(parent *html.Node) string {
	content := ""
	for node := range parent.ChildNodes() {
		content = join(content, c.inline(node))
	}
	return strings.TrimSuffix(content, " ")
}

// inline returns a node as a part of a line.
func (c *converter) inline(node *html.Node) string {
	if node.Type == html.TextNode {
		return escape(spaces.ReplaceAllString(node.Data, " "))
	}
	switch node.DataAtom {
	case atom.Button, atom.Fieldset:
		return ""
	case atom.Span, atom.Time:
		return c.line(node)
	case atom.P:
		return " " + c.line(node) + " "
	case atom.Ul:
		return strings.Join(c.lines(node), "<br>")
	case atom.Strong:
		return "**" + c.line(node) + "**"
	case atom.Code:
		return codeSpan(text(node))
	case atom.A:
		return c.link(node)
	default:
		c.fail(fmt.Errorf("cannot convert <%s> in <%s>", node.Data, node.Parent.Data))
		return ""
	}
}

// lines returns each child element as one line.
func (c *converter) lines(parent *html.Node) []string {
	var lines []string
	for node := range parent.ChildNodes() {
		if node.Type == html.ElementNode {
			lines = append(lines, c.line(node))
		}
	}
	return lines
}

func (c *converter) link(node *html.Node) string {
	content := c.line(node)
	switch {
	case attribute(node, "rel") == "alternate":
		return ""
	case attribute(node, "class") == "anchor": // leads to its own section
		return content
	}
	address, err := c.resolve(attribute(node, "href"))
	if err != nil {
		c.fail(err)
	}
	return "[" + content + "](" + address + ")"
}

// list returns a list as one block. But if the items have headings, it returns the blocks of each,
// and numbers the headings, because code in a list would have to be indented.
func (c *converter) list(list *html.Node) []string {
	var sections, items []string
	number := 0
	for item := range list.ChildNodes() {
		if item.Type != html.ElementNode {
			continue
		}
		number++
		if hasHeading(item) {
			blocks := c.blocks(item)
			blocks[0] = strings.Replace(blocks[0], "# ", fmt.Sprintf("# %d. ", number), 1)
			sections = append(sections, blocks...)
			continue
		}
		mark := "-"
		if list.DataAtom == atom.Ol {
			mark = fmt.Sprintf("%d.", number)
		}
		items = append(items, mark+" "+c.line(item))
	}
	if len(items) > 0 {
		sections = append(sections, strings.Join(items, "\n"))
	}
	return sections
}

func hasHeading(item *html.Node) bool {
	for node := range item.ChildNodes() {
		if node.Type == html.ElementNode {
			return node.DataAtom == atom.H3
		}
	}
	return false
}

// fields returns one item for each name with its description. The fields of a field are below it.
func (c *converter) fields(list *html.Node, indent string) []string {
	var items []string
	for row := range list.ChildNodes() {
		for node := range row.ChildNodes() {
			switch node.DataAtom { //nolint:exhaustive // a row has no others
			case atom.Dt:
				items = append(items, indent+"- "+c.line(node))
			case atom.Dd:
				description, inner := c.description(node, indent+"  ")
				if description != "" {
					items[len(items)-1] += ": " + description
				}
				items = append(items, inner...)
			}
		}
	}
	return items
}

// description returns the description of a field as one line, and the fields of the field.
func (c *converter) description(parent *html.Node, indent string) (description string, fields []string) {
	for node := range parent.ChildNodes() {
		if node.DataAtom == atom.Dl {
			fields = c.fields(node, indent)
		} else {
			description = join(description, c.inline(node))
		}
	}
	return strings.TrimSuffix(description, " "), fields
}

func (c *converter) table(table *html.Node) string {
	var rows []string
	for node := range table.Descendants() {
		if node.DataAtom != atom.Tr {
			continue
		}
		cells := c.lines(node)
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
		}
		rows = append(rows, "| "+strings.Join(cells, " | ")+" |")
		if len(rows) == 1 {
			rows = append(rows, "|"+strings.Repeat(" --- |", len(cells)))
		}
	}
	return strings.Join(rows, "\n")
}

// fence returns a pre element as fenced code.
func fence(pre *html.Node) string {
	language := ""
	for node := range pre.ChildNodes() {
		if class, ok := strings.CutPrefix(attribute(node, "class"), "language-"); ok {
			language = class
		}
	}
	code := text(pre)
	marks := strings.Repeat("`", max(3, longestRun(code)+1))
	return marks + language + "\n" + code + "\n" + marks
}

func codeSpan(code string) string {
	code = spaces.ReplaceAllString(code, " ")
	marks := strings.Repeat("`", longestRun(code)+1)
	if strings.HasPrefix(code, "`") || strings.HasSuffix(code, "`") {
		code = " " + code + " "
	}
	return marks + code + marks
}

// longestRun returns the length of the longest run of backquotes.
func longestRun(code string) int {
	longest := 0
	for _, run := range backquotes.FindAllString(code, -1) {
		longest = max(longest, len(run))
	}
	return longest
}

var (
	spaces     = regexp.MustCompile(`\s+`)
	backquotes = regexp.MustCompile("`+")
	// special matches characters that Markdown does not show as they are. An underscore inside
	// a word is none of them.
	special = regexp.MustCompile("[\\\\*`\\[\\]<]|\\b_+|_+\\b|~~|&[#\\w]+;")
)

// escape returns the Markdown that shows the text.
func escape(text string) string {
	return special.ReplaceAllStringFunc(text, func(found string) string {
		if found[0] == '&' {
			return `\` + found
		}
		return `\` + strings.Join(strings.Split(found, ""), `\`)
	})
}

// join appends a part to a line, with one space between them if either has one.
func join(line, part string) string {
	if line == "" || strings.HasSuffix(line, " ") {
		part = strings.TrimPrefix(part, " ")
	}
	return line + part
}

func text(element *html.Node) string {
	var text strings.Builder
	for node := range element.Descendants() {
		if node.Type == html.TextNode {
			text.WriteString(node.Data)
		}
	}
	return text.String()
}

// attribute returns the value of an attribute, or "" if the node does not have it.
func attribute(node *html.Node, name string) string {
	for _, a := range node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
