package pages

import (
	"regexp"
	"strings"

	"github.com/playwright-community/playwright-go"
)

// Area is a part of a page, such as a row or a dialog. It finds elements by role and exact
// accessible name.
type Area struct {
	tab  *Tab
	root playwright.Locator
}

// In returns the area of the element with this role and name, such as a dialog or a table.
func (a Area) In(role playwright.AriaRole, name string) Area { return Area{a.tab, a.find(role, name)} }

// Row returns the table row or list item that has an element with exactly this text.
func (a Area) Row(text string) Area {
	exact := playwright.PageGetByTextOptions{Exact: playwright.Bool(true)}
	items := a.root.GetByRole("row").Or(a.root.GetByRole("listitem"))
	return Area{a.tab, items.Filter(playwright.LocatorFilterOptions{Has: a.tab.Page.GetByText(text, exact)})}
}

// Click clicks a button.
func (a Area) Click(button string) { a.click(a.find("button", button), button) }

// DoubleClick double-clicks a button.
func (a Area) DoubleClick(button string) {
	a.tab.must(a.find("button", button).Dblclick(), "double-click %s", button)
}

// Follow follows a link and waits for the next page.
func (a Area) Follow(link string) {
	a.click(a.find("link", link), link)
	a.tab.settled()
}

// Unfold opens the part of a page under this text, or closes it.
func (a Area) Unfold(text string) {
	a.click(a.root.GetByText(text, playwright.LocatorGetByTextOptions{Exact: playwright.Bool(true)}), text)
}

// Focus puts the focus on an element.
func (a Area) Focus(role playwright.AriaRole, name string) {
	a.tab.must(a.find(role, name).Focus(), "focus %s %q", role, name)
}

// Fill enters a value into a text field.
func (a Area) Fill(field, value string) {
	a.tab.must(a.find("textbox", field).Fill(value), "fill in %s", field)
}

// Value returns the value of a text field.
func (a Area) Value(field string) string {
	value, err := a.find("textbox", field).InputValue()
	a.tab.must(err, "read %s", field)
	return value
}

// Choose chooses an option of a select box.
func (a Area) Choose(field, option string) {
	_, err := a.find("combobox", field).SelectOption(playwright.SelectOptionValues{Labels: &[]string{option}})
	a.tab.must(err, "choose %s as %s", option, field)
}

// Expect waits until an element with this role and name is visible.
func (a Area) Expect(role playwright.AriaRole, name string) {
	a.visible(a.find(role, name), "%s %q", role, name)
}

// ExpectNo waits until no element with this role and name is visible.
func (a Area) ExpectNo(role playwright.AriaRole, name string) {
	a.hidden(a.find(role, name), "%s %q", role, name)
}

// ExpectShown waits until the area is visible.
func (a Area) ExpectShown() { a.visible(a.root.First(), "%v", a.root) }

// ExpectHidden waits until the area is not visible.
func (a Area) ExpectHidden() { a.hidden(a.root, "%v", a.root) }

// ExpectGone waits until the area is not part of the page.
func (a Area) ExpectGone() {
	a.tab.must(a.tab.expect.Locator(a.root).ToHaveCount(0), "expect nothing at %v", a.root)
}

// ExpectChecked waits until a radio button is checked.
func (a Area) ExpectChecked(radio string) {
	a.tab.must(a.tab.expect.Locator(a.find("radio", radio)).ToBeChecked(), "expect %s to be checked", radio)
}

// ExpectCount waits until the area has count elements with this role.
func (a Area) ExpectCount(role playwright.AriaRole, count int) {
	a.tab.must(a.tab.expect.Locator(a.find(role, "")).ToHaveCount(count), "expect %d of role %s", count, role)
}

// ExpectSaying waits until the text of the area matches pattern.
func (a Area) ExpectSaying(pattern string) {
	a.tab.must(a.tab.expect.Locator(a.root).ToContainText(regexp.MustCompile(pattern)), "expect a text that matches %s", pattern)
}

// ExpectFocus waits until the element with this role and name has the focus.
func (a Area) ExpectFocus(role playwright.AriaRole, name string) {
	a.tab.must(a.tab.expect.Locator(a.find(role, name).First()).ToBeFocused(), "expect the focus on %s %q", role, name)
}

// ExpectAttribute waits until the element with this role and name has this attribute.
func (a Area) ExpectAttribute(role playwright.AriaRole, name, attribute, value string) {
	assertion := a.tab.expect.Locator(a.find(role, name))
	a.tab.must(assertion.ToHaveAttribute(attribute, value), "expect %s %q to have %s=%q", role, name, attribute, value)
}

// Text returns the text of the element with this role and name, which may be hidden.
func (a Area) Text(role playwright.AriaRole, name string) string {
	text, err := a.root.GetByRole(role, playwright.LocatorGetByRoleOptions{
		Name: name, Exact: playwright.Bool(true), IncludeHidden: playwright.Bool(true),
	}).TextContent()
	a.tab.must(err, "read %s %q", role, name)
	return text
}

// Count returns the number of elements with this role and name.
func (a Area) Count(role playwright.AriaRole, name string) int {
	n, err := a.find(role, name).Count()
	a.tab.must(err, "count %s %q", role, name)
	return n
}

// Height returns the height of the area in pixels.
func (a Area) Height() int {
	return a.measure(`e => Math.round(e.getBoundingClientRect().height)`).(int)
}

// ExpectOneLine checks that these buttons are at the same height.
func (a Area) ExpectOneLine(buttons ...string) {
	const top = `e => Math.round(e.getBoundingClientRect().y)`
	first := a.In("button", buttons[0]).measure(top)
	for _, button := range buttons[1:] {
		if at := a.In("button", button).measure(top); at != first {
			a.tab.t.Errorf("%s: %s is at %v px and %s at %v px", callerInTest(), buttons[0], first, button, at)
		}
	}
}

// LowControls returns the controls of the main area that are lower than 44 pixels.
func (b *Tab) LowControls() []any {
	return b.Evaluate(`() => [...document.querySelectorAll("main :is(button, a, summary, input:not([type=hidden], [type=radio], [type=checkbox]), label:has([type=checkbox]))")]
		.filter(c => c.checkVisibility() && c.getBoundingClientRect().height < 43.9)
		.map(c => c.localName + " " + c.textContent.trim() + " " + c.getBoundingClientRect().height)`).([]any)
}

// measure evaluates a JavaScript function of the area's element and returns its result.
func (a Area) measure(function string) any {
	result, err := a.root.Evaluate(function, nil)
	a.tab.must(err, "evaluate %s", function)
	return result
}

// find returns the elements with this role and, unless it is empty, this exact name.
func (a Area) find(role playwright.AriaRole, name string) playwright.Locator {
	if name == "" {
		return a.root.GetByRole(role)
	}
	return a.root.GetByRole(role, playwright.LocatorGetByRoleOptions{Name: name, Exact: playwright.Bool(true)})
}

// message returns the elements with this role, alert or status, whose text matches pattern.
func (a Area) message(role playwright.AriaRole, pattern string) playwright.Locator {
	return a.find(role, "").Filter(playwright.LocatorFilterOptions{HasText: regexp.MustCompile(pattern)})
}

// ExpectAlert waits for an alert that matches pattern and returns its whole text.
func (a Area) ExpectAlert(pattern string) string { return a.read("alert", pattern) }

// ExpectStatus waits for a status that matches pattern and returns its whole text.
func (a Area) ExpectStatus(pattern string) string { return a.read("status", pattern) }

// ExpectNoAlert waits until no alert has text.
func (a Area) ExpectNoAlert() {
	a.tab.must(a.tab.expect.Locator(a.message("alert", `\S`)).ToHaveCount(0), "expect no alert")
}

// ExpectExplained checks that the alert is the accessible description of a text field.
func (a Area) ExpectExplained(field string) {
	alert := regexp.MustCompile(regexp.QuoteMeta(a.ExpectAlert(`\S`)))
	a.tab.must(a.tab.expect.Locator(a.find("textbox", field)).ToHaveAccessibleDescription(alert), "expect the alert to describe %s", field)
}

// ExpectText waits for text that matches pattern.
func (a Area) ExpectText(pattern string) {
	a.visible(a.root.GetByText(regexp.MustCompile(pattern)).First(), "text that matches %s", pattern)
}

// ExpectNoText waits until no text matches pattern.
func (a Area) ExpectNoText(pattern string) {
	a.hidden(a.root.GetByText(regexp.MustCompile(pattern)).First(), "text that matches %s", pattern)
}

func (a Area) read(role playwright.AriaRole, pattern string) string {
	message := a.message(role, pattern).First()
	a.visible(message, "%s that matches %s", role, pattern)
	text, err := message.InnerText()
	a.tab.must(err, "read the %s", role)
	return strings.TrimSpace(text)
}

func (a Area) click(target playwright.Locator, what string) {
	a.tab.must(target.Click(), "click %s", what)
}

func (a Area) visible(target playwright.Locator, what string, arguments ...any) {
	a.tab.must(a.tab.expect.Locator(target).ToBeVisible(), "expect "+what, arguments...)
}

func (a Area) hidden(target playwright.Locator, what string, arguments ...any) {
	a.tab.must(a.tab.expect.Locator(target).ToBeHidden(), "expect no "+what, arguments...)
}
