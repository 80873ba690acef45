package pages

import (
	"regexp"
	"strings"
	"time"

	"github.com/playwright-community/playwright-go"
)

// Usage opens the details of the key in a row below it.
func (r Row) Usage() Details {
	r.keys.t.Helper()
	r.keys.click(r.usage(), "Usage")
	d := Details{row: r}
	d.ExpectOpen()
	r.keys.settled()
	return d
}

// ExpectUsageClosed waits until the key's details are closed.
func (r Row) ExpectUsageClosed() {
	r.keys.t.Helper()
	r.keys.must(r.keys.expect.Locator(r.usage()).ToHaveAttribute("aria-expanded", "false"), "expect Usage of %q to be closed", r.label)
}

func (r Row) usage() playwright.Locator {
	return r.root.GetByRole("button", playwright.LocatorGetByRoleOptions{Name: regexp.MustCompile(`in 30 days$`)})
}

// Details is the row below a key with its usage.
type Details struct{ row Row }

// ExpectOpen waits until the details are open.
func (d Details) ExpectOpen() {
	d.row.keys.t.Helper()
	d.row.keys.visible(d.root(), "row of details")
	d.row.keys.must(d.row.keys.expect.Locator(d.row.usage()).ToHaveAttribute("aria-expanded", "true"), "expect Usage of %q to be open", d.row.label)
}

// ExpectSaying waits until the text of the details matches pattern.
func (d Details) ExpectSaying(pattern string) {
	d.row.keys.t.Helper()
	d.row.keys.must(d.row.keys.expect.Locator(d.root()).ToContainText(regexp.MustCompile(pattern)), "expect details saying %s", pattern)
}

// ExpectChart waits for a usage chart whose accessible name matches pattern.
func (d Details) ExpectChart(pattern string) {
	d.row.keys.t.Helper()
	chart := d.root().GetByRole("group")
	d.row.keys.must(d.row.keys.expect.Locator(chart).ToHaveAccessibleName(regexp.MustCompile(pattern)), "expect a chart named %s", pattern)
}

// ExpectDay moves to a day of the chart with the arrow keys, or to today with step 0, and waits
// until the chart shows its values.
func (d Details) ExpectDay(step int, pattern string) {
	d.row.keys.t.Helper()
	d.row.keys.must(d.root().GetByRole("radio").Last().Focus(), "go to today")
	for range step {
		d.row.keys.Press("ArrowLeft")
	}
	checked := d.root().GetByRole("radio", playwright.LocatorGetByRoleOptions{Checked: playwright.Bool(true)})
	d.row.keys.must(d.row.keys.expect.Locator(checked).ToHaveAccessibleName(regexp.MustCompile(pattern)), "expect a day saying %s", pattern)
}

// Close closes the details.
func (d Details) Close() {
	d.row.keys.t.Helper()
	d.row.keys.click(d.row.usage(), "Usage")
	d.row.keys.hidden(d.root(), "row of details")
	d.row.ExpectUsageClosed()
}

func (d Details) root() playwright.Locator {
	return d.row.keys.table().GetByRole("row").Filter(playwright.LocatorFilterOptions{HasText: "Last 24 hours"})
}

// Rename opens the form that renames the key in its row.
func (r Row) Rename() Rename {
	r.keys.t.Helper()
	r.OpenMenu()
	r.keys.click(within(r.root, "button", "Rename"), "Rename")
	n := Rename{row: r}
	r.keys.focused(n.field(), "New name")
	r.keys.settled()
	return n
}

// ExpectFocusOnMenu waits until the row's menu has the focus.
func (r Row) ExpectFocusOnMenu() {
	r.keys.t.Helper()
	r.keys.focused(r.menu(), "More actions of %q", r.label)
}

// Rename is a key's row with the form that renames it.
type Rename struct{ row Row }

// Save submits the new label. The caller checks the result.
func (n Rename) Save(label string) {
	n.row.keys.t.Helper()
	n.row.keys.fill(n.field(), label, "the new name")
	n.row.keys.click(within(n.row.keys.table(), "button", "Save name"), "Save name")
}

// Cancel cancels the renaming with the button.
func (n Rename) Cancel() {
	n.row.keys.t.Helper()
	n.row.keys.click(within(n.row.keys.table(), "button", "Cancel"), "Cancel")
	n.expectClosed()
}

// Escape cancels the renaming with the Escape key.
func (n Rename) Escape() {
	n.row.keys.t.Helper()
	n.row.keys.Press("Escape")
	n.expectClosed()
}

// ExpectOpen checks that the form is still open and its field has this value.
func (n Rename) ExpectOpen(value string) {
	n.row.keys.t.Helper()
	n.row.keys.must(n.row.keys.expect.Locator(n.field()).ToHaveValue(value), "expect the new name")
}

// ExpectButtonsOnOneLine checks that both buttons of the form are at the same height.
func (n Rename) ExpectButtonsOnOneLine() {
	n.row.keys.t.Helper()
	var at [2]*playwright.Rect
	for i, name := range []string{"Save name", "Cancel"} {
		box, err := within(n.row.keys.table(), "button", name).BoundingBox()
		n.row.keys.must(err, "measure %s", name)
		at[i] = box
	}
	if at[0].Y != at[1].Y {
		n.row.keys.t.Errorf("Save name is at %v px and Cancel at %v px", at[0].Y, at[1].Y)
	}
}

func (n Rename) expectClosed() {
	n.row.keys.t.Helper()
	n.row.keys.hidden(n.field(), "textbox New name")
	n.row.keys.settled()
}

func (n Rename) field() playwright.Locator { return within(n.row.keys.table(), "textbox", "New name") }

// ColumnPositions returns the left edges of all columns but Actions, in pixels.
func (k Keys) ColumnPositions() []int {
	k.t.Helper()
	var edges []int
	for _, name := range KeyColumns[:len(KeyColumns)-1] {
		box, err := within(k.table(), "columnheader", name).BoundingBox()
		k.must(err, "measure column %s", name)
		edges = append(edges, int(box.X+0.5))
	}
	return edges
}

// SortByUsage sorts the list by usage and waits for the order.
func (k Keys) SortByUsage(order string) {
	k.t.Helper()
	link := k.role("link", "Sort by usage")
	k.click(link, "Sort by usage")
	k.must(k.expect.Locator(link).ToHaveAttribute("data-order", order), "expect the list sorted by usage")
	k.settled()
}

// SortBy sorts the list by the header of a column and waits for the order.
func (k Keys) SortBy(column, order string) {
	k.t.Helper()
	header := within(k.table(), "columnheader", column)
	k.click(within(header, "link", column), "the header "+column)
	k.must(k.expect.Locator(header).ToHaveAttribute("aria-sort", order), "expect the list sorted by %s", column)
	k.settled()
}

// Filter filters the list.
func (k Keys) Filter(text string) {
	k.t.Helper()
	k.fill(k.role("searchbox", "Filter keys"), text, "the filter")
}

// ExpectNoFilter checks that the page has no filter.
func (k Keys) ExpectNoFilter() {
	k.t.Helper()
	k.hidden(k.role("searchbox", "Filter keys"), "filter")
}

// ExpectLabels waits until the list shows keys with these labels in this order.
func (k Keys) ExpectLabels(labels ...string) {
	k.t.Helper()
	var got []string
	for deadline := time.Now().Add(k.patience()); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
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

// ExpectSaying waits until the text of the confirmation matches pattern.
func (c Confirmation) ExpectSaying(pattern string) {
	c.row.keys.t.Helper()
	c.row.keys.must(c.row.keys.expect.Locator(c.row.root).ToContainText(regexp.MustCompile(pattern)), "expect a confirmation saying %s", pattern)
}

// For returns the same confirmation after another tab has changed the key's label.
func (c Confirmation) For(label string) Confirmation {
	return Confirmation{row: c.row.keys.Row(label)}
}
