package portal_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// element is an element of a response. Tests find elements by role and accessible name, never by
// class.
type element struct {
	t    testing.TB
	node *html.Node
}

// parse parses a page or a fragment. It turns each hx-partial into a template element, because a
// parser keeps table rows in a template.
func parse(t testing.TB, body string) element {
	t.Helper()
	body = strings.NewReplacer("<hx-partial", "<template", "</hx-partial>", "</template>").Replace(body)
	// A parser drops rows outside a table.
	if strings.HasPrefix(strings.TrimSpace(body), "<tr") {
		body = "<table>" + body + "</table>"
	}
	node, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatalf("the response is not HTML: %v", err)
	}
	return element{t, node}
}

// one returns the element with the role and name. There must be exactly one.
func (e element) one(role, name string) element {
	e.t.Helper()
	found := e.all(role, name)
	if len(found) != 1 {
		e.t.Fatalf("%d elements are %s %q, want 1, in:\n%s", len(found), role, name, e.text())
	}
	return found[0]
}

// none checks that no element has the role and name.
func (e element) none(role, name string) {
	e.t.Helper()
	if found := e.all(role, name); len(found) != 0 {
		e.t.Errorf("%d elements are %s %q, want none", len(found), role, name)
	}
}

// all returns the elements with the role and name, in order. An empty name matches all. Alerts and
// statuses have no name and match by their text.
func (e element) all(role, name string) []element {
	var found []element
	for node := range e.node.Descendants() {
		candidate := element{e.t, node}
		if node.Type != html.ElementNode || candidate.role() != role {
			continue
		}
		named := candidate.name(e)
		inPart := role == "alert" || role == "status"
		if named == name || (inPart || name == "") && strings.Contains(named, name) {
			found = append(found, candidate)
		}
	}
	return found
}

// byID returns the element with the id, for elements that have no role. There must be one.
func (e element) byID(id string) element {
	e.t.Helper()
	found, ok := e.find("id", id)
	if !ok {
		e.t.Fatalf("no element has the id %q in:\n%s", id, e.text())
	}
	return found
}

// named returns the element with the name attribute.
func (e element) named(name string) (element, bool) { return e.find("name", name) }

func (e element) find(attribute, value string) (element, bool) {
	for node := range e.node.Descendants() {
		if candidate := (element{e.t, node}); candidate.attr(attribute) == value {
			return candidate, true
		}
	}
	return element{}, false
}

// text returns the text of the element with single spaces.
func (e element) text() string {
	var text strings.Builder
	for node := range e.node.Descendants() {
		if node.Type != html.TextNode {
			continue
		}
		// Elements divide words, but a name is part of its sentence.
		if before := node.PrevSibling; !isName(node.Parent) && (before == nil || !isName(before)) {
			text.WriteByte(' ')
		}
		text.WriteString(node.Data)
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

func isName(node *html.Node) bool { return node.Type == html.ElementNode && node.Data == "bdi" }

// exactly checks the whole text of the element.
func (e element) exactly(text string) {
	e.t.Helper()
	if got := e.text(); got != text {
		e.t.Errorf("it says %q, want %q", got, text)
	}
}

// says checks that the text contains all parts.
func (e element) says(parts ...string) {
	e.t.Helper()
	for _, part := range parts {
		if got := e.text(); !strings.Contains(got, part) {
			e.t.Errorf("it says %q, which lacks %q", got, part)
		}
	}
}

// with checks the value of an attribute, which is empty if the attribute has none.
func (e element) with(name, value string) element {
	e.t.Helper()
	if got, ok := e.lookup(name); !ok || got != value {
		e.t.Errorf("%s of %q is %q (%t), want %q", name, e.text(), got, ok, value)
	}
	return e
}

// describes checks that the element describes a field.
func (e element) describes(field element) {
	e.t.Helper()
	if id := e.attr("id"); id == "" || !slices.Contains(strings.Fields(field.attr("aria-describedby")), id) {
		e.t.Errorf("%q does not describe the field", e.text())
	}
}

// attr returns the value of an attribute, or "".
func (e element) attr(name string) string {
	value, _ := e.lookup(name)
	return value
}

func (e element) has(name string) bool {
	_, ok := e.lookup(name)
	return ok
}

func (e element) lookup(name string) (string, bool) {
	for _, attribute := range e.node.Attr {
		if attribute.Key == name {
			return attribute.Val, true
		}
	}
	return "", false
}

// form returns the form around the element.
func (e element) form() element {
	e.t.Helper()
	for node := range e.node.Ancestors() {
		if node.Data == "form" {
			return element{e.t, node}
		}
	}
	e.t.Fatalf("%q is in no form", e.text())
	return element{}
}

// role returns the ARIA role of the elements that the portal uses.
func (e element) role() string {
	if role := e.attr("role"); role != "" {
		return role
	}
	switch tag := e.node.Data; tag {
	case "h1", "h2", "h3":
		return "heading"
	case "a":
		return "link"
	case "nav":
		return "navigation"
	case "li":
		return "listitem"
	case "button", "dialog", "main", "table", "time":
		return tag
	case "select":
		return "combobox"
	case "textarea":
		return "textbox"
	case "fieldset":
		return "group"
	case "section":
		return "region"
	case "input":
		if kind := e.attr("type"); kind == "radio" || kind == "checkbox" {
			return kind
		}
		if e.attr("type") == "search" {
			return "searchbox"
		}
		if kind := e.attr("type"); slices.Contains([]string{"", "text", "email", "password", "date"}, kind) {
			return "textbox"
		}
	}
	return ""
}

// name returns the accessible name. Labels are looked up within the response.
func (e element) name(within element) string {
	if label := e.attr("aria-label"); label != "" {
		return label
	}
	var labels []string
	for id := range strings.FieldsSeq(e.attr("aria-labelledby")) {
		if label, ok := within.find("id", id); ok {
			labels = append(labels, label.text())
		}
	}
	if len(labels) > 0 {
		return strings.Join(labels, " ")
	}
	if e.node.Data == "fieldset" {
		for node := range e.node.Descendants() {
			if node.Data == "legend" {
				return element{e.t, node}.text()
			}
		}
	}
	if id := e.attr("id"); e.node.Data == "input" && id == "" && e.node.Parent.Data == "label" {
		return e.parent().text()
	}
	if id := e.attr("id"); slices.Contains([]string{"input", "select", "textarea"}, e.node.Data) && id != "" {
		for node := range within.node.Descendants() {
			if label := (element{e.t, node}); node.Data == "label" && label.attr("for") == id {
				return label.text()
			}
		}
	}
	return e.text()
}

// chosen checks which option of the element is chosen, by its value.
func (e element) chosen(value string) {
	e.t.Helper()
	for node := range e.node.Descendants() {
		if option := (element{e.t, node}); node.Data == "option" && option.has("selected") != (option.attr("value") == value) {
			e.t.Errorf("the option %q is wrong", option.text())
		}
	}
}

// parent returns the parent element.
func (e element) parent() element { return element{e.t, e.node.Parent} }

// containsText reports whether the response contains the text.
func containsText(a answer, text string) bool { return strings.Contains(a.text(), text) }
