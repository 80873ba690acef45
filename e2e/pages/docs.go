package pages

import (
	"regexp"

	"github.com/playwright-community/playwright-go"
)

// Docs is a page of the public documentation.
type Docs struct{ *Tab }

// OpenReference opens the book about the API, which begins with the first call.
func OpenReference(b *Tab) Docs { return openDocs(b, "/docs", "Use the API") }

// OpenGateway opens the book about gateways.
func OpenGateway(b *Tab) Docs { return openDocs(b, "/docs/gateway", "Run behind a gateway") }

// OpenOperate opens the book for operators.
func OpenOperate(b *Tab) Docs { return openDocs(b, "/docs/operate", "Operate") }

// OpenGuides opens the guides.
func OpenGuides(b *Tab) Docs { return openDocs(b, "/docs/guides", "Guides") }

// OpenChangelog opens the changelog.
func OpenChangelog(b *Tab) Docs { return openDocs(b, "/docs/changelog", "Changelog") }

func openDocs(b *Tab, path, heading string) Docs {
	b.Open(path)
	b.ExpectPath(path)
	b.visible(b.find("heading", heading).First(), "heading %q", heading)
	return Docs{b}
}

// FollowContents follows a link of the contents. Its name may begin with a method.
func (d Docs) FollowContents(name string) {
	link := regexp.MustCompile(`^([A-Z]+ )?` + regexp.QuoteMeta(name) + `$`)
	contents := d.find("navigation", "Contents")
	d.click(contents.GetByRole("link", playwright.LocatorGetByRoleOptions{Name: link}), name)
	d.settled()
}

// Example returns the code of an example, also of one behind a tab.
func (b *Tab) Example(name string) string { return b.Text("region", name+" example") }

// Integrate is the page at /integrate.
type Integrate struct{ Frame }

// OpenIntegrate opens the page.
func OpenIntegrate(b *Tab) Integrate {
	b.open("/integrate", "Integrate")
	return Integrate{Frame{b}}
}

// ChooseLanguage shows the example for a language.
func (i Integrate) ChooseLanguage(language string) {
	// The radio button is hidden behind its label.
	i.click(i.Page.GetByText(language, playwright.PageGetByTextOptions{Exact: playwright.Bool(true)}).First(), language)
	i.Expect("region", language+" example")
}

// File unfolds the complete file with this name and returns its code.
func (i Integrate) File(file, name string) string {
	i.click(i.Page.Locator("summary").Filter(playwright.LocatorFilterOptions{HasText: file}), file)
	i.Expect("region", name+" example")
	return i.Example(name)
}
