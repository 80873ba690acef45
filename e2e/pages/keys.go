package pages

import (
	"regexp"
	"strings"

	"github.com/playwright-community/playwright-go"
)

// KeyColumns has the column headers of the table of keys, in order.
var KeyColumns = []string{"Label", "Key", "Created", "Last Used", "Actions"}

// Keys is the page at /api-keys.
type Keys struct{ Frame }

// OpenKeys opens the page. The visitor must be signed in.
func OpenKeys(b *Tab) Keys {
	b.t.Helper()
	b.Open("/api-keys")
	return ExpectKeys(b)
}

// ExpectKeys waits until the tab shows the page.
func ExpectKeys(b *Tab) Keys {
	b.t.Helper()
	b.ExpectPath("/api-keys")
	b.ExpectHeading("API Keys")
	return Keys{Frame{b}}
}

// Submit submits the form for a new key. The caller checks the result.
func (k Keys) Submit(label string) {
	k.t.Helper()
	k.Type(label)
	k.PressGenerate()
}

// Type fills in the label.
func (k Keys) Type(label string) {
	k.t.Helper()
	k.fill(k.role("textbox", "Label"), label, "the label")
}

// PressGenerate submits the form with its current values.
func (k Keys) PressGenerate() {
	k.t.Helper()
	k.click(k.generate(), "Generate key")
}

// PressGenerateTwice submits the form with a double click.
func (k Keys) PressGenerateTwice() {
	k.t.Helper()
	k.must(k.generate().Dblclick(), "press Generate key twice")
}

// Generate generates a key and returns its one-time reveal.
func (k Keys) Generate(label string) Reveal {
	k.t.Helper()
	k.Submit(label)
	return ExpectReveal(k.Tab)
}

// Add generates a key, closes its reveal and returns the whole key.
func (k Keys) Add(label string) string {
	k.t.Helper()
	reveal := k.Generate(label)
	secret := reveal.Key()
	reveal.Abandon()
	k.ExpectListed(label)
	return secret
}

// Label returns the value of the form's field.
func (k Keys) Label() string {
	k.t.Helper()
	value, err := k.role("textbox", "Label").InputValue()
	k.must(err, "read the label")
	return value
}

// ExpectLabelExplained waits for an alert and checks that it is the accessible description of the
// Label field.
func (k Keys) ExpectLabelExplained() {
	k.t.Helper()
	alert := regexp.MustCompile(regexp.QuoteMeta(k.ExpectAlert()))
	field := k.role("textbox", "Label")
	k.must(k.expect.Locator(field).ToHaveAccessibleDescription(alert), "expect the field to be described by the alert")
}

// RevokeFromAlert follows the Revoke link in the alert about a repeated form. It returns the
// confirmation.
func (k Keys) RevokeFromAlert(label string) Confirmation {
	k.t.Helper()
	alert := k.Page.GetByRole("alert")
	k.visible(alert.GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "Generate another"}), "link to generate another key")
	k.click(alert.GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "Revoke"}), "the link to revoke the key")
	c := Confirmation{row: k.Row(label)}
	c.ExpectOpen()
	k.settled()
	return c
}

// ExpectNone waits until the page shows that there are no keys.
func (k Keys) ExpectNone() {
	k.t.Helper()
	k.visible(k.Page.GetByText("No API keys yet"), "the text No API keys yet")
	k.hidden(k.table(), "table of keys")
}

// ExpectColumns checks that the table has exactly the columns in KeyColumns.
func (k Keys) ExpectColumns() {
	k.t.Helper()
	headers := k.table().GetByRole("columnheader")
	k.must(k.expect.Locator(headers).ToHaveCount(len(KeyColumns)), "expect the columns")
	for i, name := range KeyColumns {
		k.must(k.expect.Locator(headers.Nth(i)).ToHaveAccessibleName(name), "expect column %d", i+1)
	}
}

// ExpectListed waits for a key with this label.
func (k Keys) ExpectListed(label string) {
	k.t.Helper()
	k.visible(k.Row(label).root.First(), "row of %q", label)
}

// ExpectNotListed waits until no key has this label.
func (k Keys) ExpectNotListed(label string) {
	k.t.Helper()
	k.must(k.expect.Locator(k.Row(label).root).ToHaveCount(0), "expect no row of %q", label)
}

// Count returns the number of keys in the list.
func (k Keys) Count() int {
	k.t.Helper()
	n, err := within(k.table(), "button", "Revoke").Count()
	k.must(err, "count the keys")
	return n
}

// Row returns the row of the key with this label.
func (k Keys) Row(label string) Row {
	return Row{keys: k, label: label, root: k.table().GetByRole("row").Filter(playwright.LocatorFilterOptions{
		Has: k.role("cell", label).Or(k.role("rowheader", label)),
	})}
}

func (k Keys) generate() playwright.Locator { return k.role("button", "Generate key") }
func (k Keys) table() playwright.Locator    { return k.role("table", "Active API keys") }

// Row is one key in the list.
type Row struct {
	keys  Keys
	label string
	root  playwright.Locator
}

// Text returns the row's text in the column.
func (r Row) Text(column string) string {
	r.keys.t.Helper()
	text, err := r.cell(column).InnerText()
	r.keys.must(err, "read %s of %q", column, r.label)
	return strings.TrimSpace(text)
}

// ExpectText waits until the row's text in the column equals text.
func (r Row) ExpectText(column, text string) {
	r.keys.t.Helper()
	r.keys.must(r.keys.expect.Locator(r.cell(column)).ToHaveText(text), "expect %s of %q", column, r.label)
}

// ExpectUsed waits until Last Used is a relative time with the exact time on hover.
func (r Row) ExpectUsed() {
	r.keys.t.Helper()
	moment := r.cell("Last Used").GetByRole("time")
	r.keys.visible(moment, "a time as Last Used of %q", r.label)
	for _, attribute := range []string{"datetime", "title"} {
		value, err := moment.GetAttribute(attribute)
		r.keys.must(err, "read the time's %s", attribute)
		if value == "" {
			r.keys.t.Errorf("the time of Last Used has no %s", attribute)
		}
	}
	if text := r.Text("Last Used"); text == "" || text == "Never" {
		r.keys.t.Errorf("Last Used of a used key is %q", text)
	}
}

// Revoke presses Revoke and returns the confirmation.
func (r Row) Revoke() Confirmation {
	r.keys.t.Helper()
	r.keys.click(r.revoke(), "Revoke")
	c := Confirmation{row: r}
	r.keys.visible(c.confirm(), "button Confirm revoke")
	r.keys.settled()
	return c
}

// ExpectFocusOnRevoke waits until the row's Revoke has the focus.
func (r Row) ExpectFocusOnRevoke() {
	r.keys.t.Helper()
	r.keys.focused(r.revoke(), "Revoke of %q", r.label)
}

func (r Row) revoke() playwright.Locator { return within(r.root, "button", "Revoke") }

func (r Row) cell(column string) playwright.Locator {
	r.keys.t.Helper()
	for i, name := range KeyColumns {
		if name == column {
			return r.root.GetByRole("cell").Or(r.root.GetByRole("rowheader")).Nth(i)
		}
	}
	r.keys.t.Fatalf("the list of keys has no column %q", column)
	return nil
}

// ConfirmationPath returns the path of the confirmation page that browsers without JavaScript use.
func (r Row) ConfirmationPath() string {
	r.keys.t.Helper()
	action, err := r.revoke().Evaluate(`b => new URL(b.form ? b.form.action : b.href).pathname`, nil)
	r.keys.must(err, "find where Revoke of %q leads", r.label)
	return action.(string)
}

// SubmitAsPage submits the form for a new key as a browser without JavaScript does.
func (k Keys) SubmitAsPage(label string) {
	k.t.Helper()
	k.Type(label)
	_, err := k.generate().Evaluate(`b => HTMLFormElement.prototype.submit.call(b.form)`, nil)
	k.must(err, "submit the form as a page")
}

// RevokeMasked revokes the key that the list shows as masked.
func (k Keys) RevokeMasked(masked string) {
	k.t.Helper()
	row := k.Page.GetByRole("row").Filter(playwright.LocatorFilterOptions{Has: k.role("cell", masked)})
	k.click(within(row, "button", "Revoke"), "Revoke")
	k.click(k.role("button", "Confirm revoke"), "Confirm revoke")
}
