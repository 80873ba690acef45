package pages

import (
	"regexp"

	"github.com/playwright-community/playwright-go"
)

// Docs is a page of the public documentation.
type Docs struct{ *Tab }

// OpenDocs opens the page of the documentation with this path and heading.
func OpenDocs(b *Tab, path, heading string) Docs {
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

// Prompt returns the prompt for a coding agent.
func (i Integrate) Prompt() string { return i.Text("region", "Prompt for a coding agent") }
