package pages

import "github.com/playwright-community/playwright-go"

// ExpectRequests waits until the row shows this number of requests.
func (r Row) ExpectRequests(figure string) {
	r.keys.t.Helper()
	r.keys.must(r.keys.expect.Locator(r.usage()).ToHaveText(figure+" in 30 days"), "expect the usage of %q", r.label)
}

// OpenMenu opens the menu of the row. If the menu is open, OpenMenu closes it.
func (r Row) OpenMenu() {
	r.keys.t.Helper()
	r.keys.click(r.menu(), "More actions")
}

// ExpectActions opens the menu of the row, checks its entries and closes it.
func (r Row) ExpectActions(names ...string) {
	r.keys.t.Helper()
	r.OpenMenu()
	menu := r.root.GetByRole("group")
	entries := menu.GetByRole("button").Or(menu.GetByRole("link"))
	r.keys.must(r.keys.expect.Locator(entries).ToHaveText(names), "expect the menu of %q", r.label)
	r.OpenMenu()
}

// ExpectBadge waits until the row shows a badge with this text.
func (r Row) ExpectBadge(text string) {
	r.keys.t.Helper()
	r.keys.visible(within(r.root, "link", text), "badge %q of %q", text, r.label)
}

func (r Row) menu() playwright.Locator { return r.root.GetByLabel("More actions") }

// ExpectCellsShown expects each cell but Actions to be drawn, with nothing on top of it.
func (r Row) ExpectCellsShown() {
	r.keys.t.Helper()
	for _, column := range KeyColumns[:len(KeyColumns)-1] {
		shown, err := r.cell(column).Evaluate(`cell => {
			cell.scrollIntoView({block: "center"})
			const box = cell.getBoundingClientRect()
			return cell.contains(document.elementFromPoint(box.x + 4, box.y + box.height / 2))
		}`, nil)
		r.keys.must(err, "look at the cell %s", column)
		if shown != true {
			r.keys.t.Errorf("the cell %s is not drawn", column)
		}
	}
}

// ExpectOneEmptyBox waits until the list shows that nothing matches, without the table.
func (k Keys) ExpectOneEmptyBox() {
	k.t.Helper()
	k.visible(k.Page.GetByText("No keys match this filter"), "the text No keys match this filter")
	k.hidden(k.table(), "table of keys")
}

// ExpectLabelTaken waits for the warning that the key with this value already has the label. If the
// value is empty, it expects no warning.
func (k Keys) ExpectLabelTaken(secret string) {
	k.t.Helper()
	warning := k.Page.GetByText("Another active key has this label")
	if secret == "" {
		k.hidden(warning, "warning of the label")
		return
	}
	k.must(k.expect.Locator(warning).ToContainText("nas_..."+secret[len(secret)-4:]), "expect a warning of the label")
}

// HeightPerKey returns the height of the table, divided by its keys, in pixels.
func (k Keys) HeightPerKey() float64 {
	k.t.Helper()
	box, err := k.table().BoundingBox()
	k.must(err, "measure the table")
	return box.Height / float64(k.Count())
}

// Small returns the controls of the page that are lower than 44 pixels.
func (k Keys) Small() []string {
	k.t.Helper()
	found, err := k.Page.GetByRole("main").Locator("button, a, summary, input:not([type=hidden], [type=radio])").
		EvaluateAll(`controls => controls.filter(c => c.checkVisibility() && c.getBoundingClientRect().height < 43.9)
			.map(c => c.localName + " " + c.textContent.trim() + " " + c.getBoundingClientRect().height)`)
	k.must(err, "measure the controls")
	var small []string
	for _, control := range found.([]any) {
		small = append(small, control.(string))
	}
	return small
}
