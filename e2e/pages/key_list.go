package pages

import (
	"regexp"
	"strings"
	"time"

	"github.com/playwright-community/playwright-go"
)

// Usage opens the row of details below the key.
func (r Row) Usage() Details {
	r.keys.t.Helper()
	r.keys.click(r.usage(), "Usage")
	d := Details{row: r}
	d.ExpectOpen()
	r.keys.settled()
	return d
}

// ExpectUsageClosed waits until the row says that its details are closed.
func (r Row) ExpectUsageClosed() {
	r.keys.t.Helper()
	r.keys.must(r.keys.expect.Locator(r.usage()).ToHaveAttribute("aria-expanded", "false"), "expect Usage of %q to be closed", r.label)
}

func (r Row) usage() playwright.Locator { return within(r.root, "button", "Usage") }

// Details is the row below a key that tells of its use.
type Details struct{ row Row }

// ExpectOpen waits for the row of details.
func (d Details) ExpectOpen() {
	d.row.keys.t.Helper()
	d.row.keys.visible(d.root(), "row of details")
	d.row.keys.must(d.row.keys.expect.Locator(d.row.usage()).ToHaveAttribute("aria-expanded", "true"), "expect Usage of %q to be open", d.row.label)
}

// ExpectSaying waits for details that match pattern.
func (d Details) ExpectSaying(pattern string) {
	d.row.keys.t.Helper()
	d.row.keys.must(d.row.keys.expect.Locator(d.root()).ToContainText(regexp.MustCompile(pattern)), "expect details saying %s", pattern)
}

// ExpectDrawn waits for the drawing, whose words match pattern.
func (d Details) ExpectDrawn(pattern string) {
	d.row.keys.t.Helper()
	drawing := d.root().GetByRole("img")
	d.row.keys.must(d.row.keys.expect.Locator(drawing).ToHaveAccessibleName(regexp.MustCompile(pattern)), "expect a drawing named %s", pattern)
}

// Close closes the details again.
func (d Details) Close() {
	d.row.keys.t.Helper()
	d.row.keys.click(d.row.usage(), "Usage")
	d.row.keys.hidden(d.root(), "row of details")
	d.row.ExpectUsageClosed()
}

func (d Details) root() playwright.Locator {
	return d.row.keys.table().GetByRole("row").Filter(playwright.LocatorFilterOptions{HasText: "Last 24 hours"})
}

// Rename asks for another label in the row.
func (r Row) Rename() Rename {
	r.keys.t.Helper()
	r.keys.click(within(r.root, "button", "Rename"), "Rename")
	n := Rename{row: r}
	r.keys.focused(n.field(), "New name")
	r.keys.settled()
	return n
}

// ExpectFocusOnRename waits until the row's Rename has the focus.
func (r Row) ExpectFocusOnRename() {
	r.keys.t.Helper()
	r.keys.focused(within(r.root, "button", "Rename"), "Rename of %q", r.label)
}

// Rename is the row of a key that asks for another label.
type Rename struct{ row Row }

// Save gives the key the label; what comes of it is for the caller to expect.
func (n Rename) Save(label string) {
	n.row.keys.t.Helper()
	n.row.keys.fill(n.field(), label, "the new name")
	n.row.keys.click(within(n.row.keys.table(), "button", "Save name"), "Save name")
}

// Keep leaves the label as it is.
func (n Rename) Keep() {
	n.row.keys.t.Helper()
	n.row.keys.click(within(n.row.keys.table(), "button", "Keep as it is"), "Keep as it is")
	n.expectGone()
}

// Escape leaves the label as it is, by the keyboard.
func (n Rename) Escape() {
	n.row.keys.t.Helper()
	n.row.keys.Press("Escape")
	n.expectGone()
}

// ExpectOpen makes sure that the row still asks, and holds what was typed.
func (n Rename) ExpectOpen(typed string) {
	n.row.keys.t.Helper()
	n.row.keys.must(n.row.keys.expect.Locator(n.field()).ToHaveValue(typed), "expect the new name")
}

// ExpectButtonsOnOneLine makes sure that both answers stand at the same height.
func (n Rename) ExpectButtonsOnOneLine() {
	n.row.keys.t.Helper()
	var at [2]*playwright.Rect
	for i, name := range []string{"Save name", "Keep as it is"} {
		box, err := within(n.row.keys.table(), "button", name).BoundingBox()
		n.row.keys.must(err, "measure %s", name)
		at[i] = box
	}
	if at[0].Y != at[1].Y {
		n.row.keys.t.Errorf("Save name is at %v px and Keep as it is at %v px", at[0].Y, at[1].Y)
	}
}

func (n Rename) expectGone() {
	n.row.keys.t.Helper()
	n.row.keys.hidden(n.field(), "textbox New name")
	n.row.keys.settled()
}

func (n Rename) field() playwright.Locator { return within(n.row.keys.table(), "textbox", "New name") }

// ColumnsAt is where the columns begin that every row has something in, in pixels.
func (k Keys) ColumnsAt() []int {
	k.t.Helper()
	var at []int
	for _, name := range KeyColumns[:len(KeyColumns)-1] {
		box, err := within(k.table(), "columnheader", name).BoundingBox()
		k.must(err, "measure column %s", name)
		at = append(at, int(box.X+0.5))
	}
	return at
}

// SortBy presses the header of the column and waits for the order.
func (k Keys) SortBy(column, order string) {
	k.t.Helper()
	header := within(k.table(), "columnheader", column)
	k.click(within(header, "link", column), "the header "+column)
	k.must(k.expect.Locator(header).ToHaveAttribute("aria-sort", order), "expect the list sorted by %s", column)
	k.settled()
}

// Filter narrows the list down.
func (k Keys) Filter(text string) {
	k.t.Helper()
	field := k.role("searchbox", "Filter keys")
	k.fill(field, text, "the filter")
	if !k.JavaScript {
		k.must(field.Press("Enter"), "send the filter")
		k.settled()
	}
}

// ExpectNoFilter makes sure that there is nothing to filter by.
func (k Keys) ExpectNoFilter() {
	k.t.Helper()
	k.hidden(k.role("searchbox", "Filter keys"), "filter")
}

// ExpectLabels waits until the list shows these keys in this order.
func (k Keys) ExpectLabels(labels ...string) {
	k.t.Helper()
	var got []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		found, err := k.table().GetByRole("row").Filter(playwright.LocatorFilterOptions{Has: k.Page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Revoke"})}).
			EvaluateAll(`rows => rows.map(row => row.cells[0].textContent)`)
		k.must(err, "read the labels")
		got = nil
		for _, label := range found.([]any) {
			got = append(got, label.(string))
		}
		if strings.Join(got, "\n") == strings.Join(labels, "\n") {
			return
		}
	}
	k.t.Fatalf("the list shows %q, want %q", got, labels)
}

// ExpectSaying makes sure that the row asks with words that match pattern.
func (c Confirmation) ExpectSaying(pattern string) {
	c.row.keys.t.Helper()
	c.row.keys.must(c.row.keys.expect.Locator(c.row.root).ToContainText(regexp.MustCompile(pattern)), "expect a confirmation saying %s", pattern)
}

// Of is the confirmation of a key whose label has changed meanwhile.
func (c Confirmation) Of(label string) Confirmation {
	return Confirmation{row: c.row.keys.Row(label)}
}
