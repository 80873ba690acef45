package pages

import (
	"regexp"
	"slices"

	"github.com/playwright-community/playwright-go"
)

// KeyColumns has the column headers of the table of keys, in order.
var KeyColumns = []string{"Label", "Key", "Created", "Last Used", "Actions"}

// Keys is the page at /api-keys.
type Keys struct{ Frame }

// OpenKeys opens the page.
func OpenKeys(b *Tab) Keys {
	b.Open("/api-keys")
	return ExpectKeys(b)
}

// ExpectKeys waits until the tab shows the page.
func ExpectKeys(b *Tab) Keys {
	b.expectPage("/api-keys", "API Keys")
	return Keys{Frame{b}}
}

// Submit submits the form for a new key.
func (k Keys) Submit(label string) {
	k.Fill("Label", label)
	k.Click("Generate key")
}

// Generate generates a key and returns its one-time reveal.
func (k Keys) Generate(label string) Reveal {
	k.Submit(label)
	return ExpectReveal(k.Tab)
}

// Add generates a key, closes its reveal and returns the whole key.
func (k Keys) Add(label string) string {
	reveal := k.Generate(label)
	secret := reveal.Secret()
	reveal.Abandon()
	k.Row(label).ExpectShown()
	return secret
}

// SubmitAsPage submits the form for a new key as a browser without JavaScript does.
func (k Keys) SubmitAsPage(label string) {
	k.Fill("Label", label)
	Area{k.Tab, k.find("button", "Generate key")}.measure(`b => HTMLFormElement.prototype.submit.call(b.form)`)
}

// ExpectNone waits until the page shows that there are no keys.
func (k Keys) ExpectNone() {
	k.ExpectText("No API keys yet")
	k.hidden(k.Table().root, "table of keys")
}

// ExpectColumns checks that the table has exactly the columns in KeyColumns.
func (k Keys) ExpectColumns() {
	headers := k.expect.Locator(k.Table().find("columnheader", ""))
	k.must(headers.ToHaveText(KeyColumns), "expect the columns")
}

// Count returns the number of keys in the list.
func (k Keys) Count() int { return k.Table().Count("button", "Revoke") }

// Select selects the keys with these labels, presses "Revoke selected" and returns the question.
func (k Keys) Select(labels ...string) Area {
	for _, label := range labels {
		name := "Select " + label
		box := k.Table().find("checkbox", name)
		k.must(box.Check(), "select %s", label)
	}
	k.Click("Revoke selected")
	return k.In("region", "Selected keys")
}

// OpenRestrictions opens the restrictions of the form for a new key.
func (k Keys) OpenRestrictions() Restrictions {
	k.Unfold("Restrictions of the new key")
	return Restrictions{k.Tab}
}

// OpenKinds opens the choices of another kind of key in the form for a new key.
func (k Keys) OpenKinds() Area {
	k.Unfold("Another kind of key")
	return k.In("form", "New key")
}

// Table is the table of keys.
func (k Keys) Table() Area { return k.In("table", "Active API keys") }

// Row returns the row of the key with this label, or with these last characters of its value.
func (k Keys) Row(label string) Row { return Row{k.Table().Row(label)} }

// RowOf returns the row of the key with this value.
func (k Keys) RowOf(secret string) Row { return k.Row(Masked(secret)) }

// Masked returns a key as the list shows it.
func Masked(secret string) string { return "nas_..." + secret[len(secret)-4:] }

// ExpectLabels waits until the list shows keys with these labels in this order.
func (k Keys) ExpectLabels(labels ...string) {
	rows := k.Table().find("row", "").Filter(playwright.LocatorFilterOptions{Has: k.Page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Revoke"})})
	k.eventually("the keys "+regexp.QuoteMeta(labels[0])+" ...", func() bool {
		found, err := rows.EvaluateAll(`rows => rows.map(row => row.cells[0].textContent)`)
		k.must(err, "read the labels")
		return slices.EqualFunc(found.([]any), labels, func(got any, want string) bool { return got == want })
	})
}

// SortBy sorts the list in one of the orders that its control offers.
func (k Keys) SortBy(order string) {
	k.Focus("combobox", "Sort by")
	k.Choose("Sort by", order)
	if !k.JavaScript {
		k.Click("Sort")
	}
	k.settled()
}

// Filter filters the list.
func (k Keys) Filter(text string) {
	k.must(k.find("searchbox", "Filter keys").Fill(text), "fill in the filter")
}

// OpenRevoked opens the page of revoked keys.
func (k Keys) OpenRevoked() Area {
	k.Follow("Revoked keys")
	k.expectPage("/api-keys/revoked", "Revoked keys")
	return k.In("table", "Revoked API keys")
}

// ColumnPositions returns the left edges of all columns but Actions, in pixels.
func (k Keys) ColumnPositions() (edges []int) {
	for _, name := range KeyColumns[:len(KeyColumns)-1] {
		edges = append(edges, k.In("columnheader", name).measure(`e => Math.round(e.getBoundingClientRect().x)`).(int))
	}
	return edges
}

// Row is one key in the list.
type Row struct{ Area }

// ExpectCell waits until the row's text in the column equals text.
func (r Row) ExpectCell(column, text string) {
	cell := r.find("cell", "").Nth(slices.Index(KeyColumns, column))
	r.tab.must(r.tab.expect.Locator(cell).ToHaveText(text), "expect %s %q", column, text)
}

// ExpectUsed waits until Last Used is a relative time with the exact time on hover.
func (r Row) ExpectUsed() {
	moment := r.find("cell", "").Nth(slices.Index(KeyColumns, "Last Used")).GetByRole("time")
	for _, attribute := range []string{"datetime", "title"} {
		r.tab.must(r.tab.expect.Locator(moment).ToHaveAttribute(attribute, regexp.MustCompile(`\d`)), "expect a time as Last Used")
	}
	r.tab.must(r.tab.expect.Locator(moment).ToHaveText(regexp.MustCompile(`now|ago`)), "expect a relative time")
}

// Revoke presses Revoke and waits for the confirmation. Without JavaScript it is a page.
func (r Row) Revoke() Confirmation {
	r.Click("Revoke")
	c := Confirmation{Row: r.asked(), list: r}
	c.ExpectOpen()
	r.tab.settled()
	return c
}

// asked returns what a row asks: in the row, or without JavaScript on a page of its own.
func (r Row) asked() Row {
	if r.tab.JavaScript {
		return r
	}
	return Row{r.tab.In("main", "")}
}

// Asked is the row while it asks to confirm its revocation.
func (r Row) Asked() Confirmation { return Confirmation{Row: r.asked(), list: r} }

// OpenMenu opens the menu of the row. If the menu is open, OpenMenu closes it.
func (r Row) OpenMenu() { r.Click("More actions") }

// ExpectMenu waits until the row's menu is open or closed, which are "true" and "false".
func (r Row) ExpectMenu(open string) {
	r.ExpectAttribute("button", "More actions", "aria-expanded", open)
}

// ExpectActions opens the menu of the row, checks its entries and closes it.
func (r Row) ExpectActions(names ...string) {
	r.OpenMenu()
	menu := r.root.GetByRole("group")
	entries := menu.GetByRole("button").Or(menu.GetByRole("link"))
	r.tab.must(r.tab.expect.Locator(entries).ToHaveText(names), "expect the menu")
	r.OpenMenu()
}

// ExpectFocusOnMenu waits until the button of the row's menu has the focus.
func (r Row) ExpectFocusOnMenu() { r.ExpectFocus("button", "More actions") }

// ExpectFocused waits until the row itself has the focus.
func (r Row) ExpectFocused() {
	r.tab.must(r.tab.expect.Locator(r.root).ToBeFocused(), "expect the focus on the row")
}

// ExpectCellsDrawn checks that each cell but Actions is drawn, with nothing on top of it.
func (r Row) ExpectCellsDrawn() {
	hidden := r.measure(`row => {
		row.scrollIntoView({block: "center"})
		return [...row.cells].slice(0, 4).filter(cell => {
			const box = cell.getBoundingClientRect()
			return !cell.contains(document.elementFromPoint(box.x + 4, box.y + box.height / 2))
		}).length
	}`)
	if hidden != 0 {
		r.tab.t.Errorf("%s: %v cells are not drawn", callerInTest(), hidden)
	}
}

// Usage opens the page of the key with this label.
func (r Row) Usage(label string) Chart {
	name := "Usage of " + label
	r.Follow(name)
	r.tab.ExpectHeading(label)
	Frame{r.tab}.ExpectCurrent("API Keys")
	return Chart{r.tab.In("figure", "Usage")}
}

// Chart is the chart of the usage of a key.
type Chart struct{ Area }

// FocusDay puts the focus on the last day of the chart.
func (d Chart) FocusDay() { d.tab.must(d.find("radio", "").Last().Focus(), "focus the chart") }

// ExpectDay waits until the chart shows the values of a day that matches pattern.
func (d Chart) ExpectDay(pattern string) {
	checked := d.root.GetByRole("radio", playwright.LocatorGetByRoleOptions{Checked: playwright.Bool(true)})
	d.tab.must(d.tab.expect.Locator(checked).ToHaveAccessibleName(regexp.MustCompile(pattern)), "expect the day %s", pattern)
}

// Restrictions opens the page of the key's restrictions.
func (r Row) Restrictions(label string) Restrictions {
	r.OpenMenu()
	r.Follow("Restrictions")
	r.tab.ExpectHeading("Restrictions of " + label)
	return Restrictions{r.tab}
}

// Rename opens the form that renames the key in its row.
func (r Row) Rename() Rename {
	r.OpenMenu()
	r.Click("Rename")
	form := Rename{r.asked()}
	form.ExpectFocus("textbox", "New name")
	r.tab.settled()
	return form
}

// Rename is the form that renames a key.
type Rename struct{ Row }

// Save submits the new label.
func (n Rename) Save(label string) {
	n.Fill("New name", label)
	n.Click("Save name")
}

// Rotate opens the rotation of the row's key.
func (r Row) Rotate() Rotation {
	r.OpenMenu()
	r.Follow("Rotate")
	return ExpectRotation(r.tab)
}

// Confirmation asks to confirm the revocation of a key.
type Confirmation struct {
	Row

	list Row // in the list
}

// AskedOn returns the question on a page of its own.
func AskedOn(b *Tab, label string) Confirmation {
	heading := "Revoke " + label
	b.ExpectHeading(heading)
	return Confirmation{Row: Row{b.In("main", "")}}
}

// ExpectOpen checks that the row asks for confirmation and explains the effect of a revocation.
func (c Confirmation) ExpectOpen() {
	c.Expect("button", "Confirm revoke")
	c.Expect("button", "Cancel")
	c.ExpectSaying(`takes effect immediately and can’t be undone`)
}

// Confirm presses Confirm revoke.
func (c Confirmation) Confirm() { c.Click("Confirm revoke") }

// Reason gives a reason for the revocation.
func (c Confirmation) Reason(reason string) {
	c.Unfold("Add a reason")
	c.Fill("Reason", reason)
}

// ExpectClosed waits until the row no longer asks, and has the focus on Revoke.
func (c Confirmation) ExpectClosed() {
	c.ExpectNo("button", "Confirm revoke")
	c.list.ExpectFocus("button", "Revoke")
	c.tab.settled()
}

// Restrictions are the controls that restrict a key, on the page of keys or on the page of a key.
type Restrictions struct{ *Tab }

// Set makes the key expire on a date, and restricts it to an agent and to networks.
func (r Restrictions) Set(date, agent, networks string) {
	r.Choose("Expires", "On a date")
	r.Fill("Expiry date", date)
	r.Expect("radio", "All agents")
	r.must(r.find("radio", "Only these").Check(), "restrict the agents")
	r.must(r.find("checkbox", agent).Check(), "choose the agent %s", agent)
	r.Fill("Allowed networks", networks)
}

// AddAddress adds the address of the browser and returns the networks.
func (r Restrictions) AddAddress() string {
	r.Click("Add my address")
	r.ExpectStatus("Added")
	return r.Value("Allowed networks")
}

// Save writes a note and saves. The caller checks the result.
func (r Restrictions) Save(note string) {
	r.Fill("Note", note)
	r.Click("Save restrictions")
}

// Key is the page of a key.
type Key struct{ Frame }

// Page opens the page of the key by its label.
func (r Row) Page(label string) Key {
	r.Follow(label)
	return ExpectKey(r.tab, label)
}

// ExpectKey waits until the tab shows the page of the key with this label.
func ExpectKey(b *Tab, label string) Key {
	b.ExpectHeading(label)
	return Key{Frame{b}}
}

// ExpectFact waits until the page shows a fact about the key.
func (k Key) ExpectFact(name, value string) {
	terms := k.find("term", "").Filter(playwright.LocatorFilterOptions{HasText: regexp.MustCompile("^" + name + "$")})
	k.must(k.expect.Locator(terms.Locator("xpath=..")).ToContainText(value), "expect %s %q", name, value)
}

// Rename renames the key and returns its page afterwards.
func (k Key) Rename(label string) Key {
	k.Follow("Rename")
	k.Fill("New name", label)
	k.Click("Save name")
	return ExpectKey(k.Tab, label)
}

// Revoke presses Revoke and returns the question, which is a page.
func (k Key) Revoke(label string) Confirmation {
	k.Click("Revoke")
	return AskedOn(k.Tab, label)
}
