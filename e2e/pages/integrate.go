package pages

import "github.com/playwright-community/playwright-go"

// Integrate is the page at /integrate.
type Integrate struct{ Frame }

// OpenIntegrate opens the page. The visitor must be signed in.
func OpenIntegrate(b *Tab) Integrate {
	b.t.Helper()
	b.Open("/integrate")
	b.ExpectPath("/integrate")
	b.ExpectHeading("Integrate")
	return Integrate{Frame{b}}
}

// Choose shows the example for a language.
func (i Integrate) Choose(language string) {
	i.t.Helper()
	// The radio button is hidden behind its label.
	i.click(i.Page.GetByText(language, playwright.PageGetByTextOptions{Exact: playwright.Bool(true)}).First(), language)
	i.must(i.expect.Locator(i.role("radio", language)).ToBeChecked(), "expect %s to be chosen", language)
}

// Example returns the code of the visible example with this name.
func (i Integrate) Example(name string) string {
	i.t.Helper()
	region := i.role("region", name+" example")
	i.visible(region, "the %s example", name)
	code, err := region.TextContent()
	i.must(err, "read the %s example", name)
	return code
}

// File unfolds the complete file with this name and returns its code.
func (i Integrate) File(file, name string) string {
	i.t.Helper()
	i.click(i.Page.Locator("summary").Filter(playwright.LocatorFilterOptions{HasText: file}), file)
	return i.Example(name)
}

// ExpectHidden checks that the example with this name is hidden.
func (i Integrate) ExpectHidden(name string) {
	i.t.Helper()
	i.hidden(i.role("region", name+" example"), "the %s example", name)
}

// Copy presses the button that copies the example with this name.
func (i Integrate) Copy(name string) {
	i.t.Helper()
	i.click(i.role("button", "Copy "+name+" example"), "the copy button of "+name)
}

// ShowFor shows the examples for another agent.
func (i Integrate) ShowFor(agent string) {
	i.t.Helper()
	_, err := i.role("combobox", "Examples for").SelectOption(playwright.SelectOptionValues{Labels: &[]string{agent}})
	i.must(err, "choose the agent %s", agent)
	i.click(i.role("button", "Show"), "Show")
	i.settled()
}
