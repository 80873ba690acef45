package pages

import (
	"regexp"

	"github.com/playwright-community/playwright-go"
)

// Docs is a page of the public documentation.
type Docs struct{ *Tab }

// OpenReference opens the API reference.
func OpenReference(b *Tab) Docs { b.t.Helper(); return openDocs(b, "/docs", "API reference") }

// OpenGuides opens the guides.
func OpenGuides(b *Tab) Docs { b.t.Helper(); return openDocs(b, "/docs/guides", "Guides") }

// OpenChangelog opens the changelog.
func OpenChangelog(b *Tab) Docs { b.t.Helper(); return openDocs(b, "/docs/changelog", "Changelog") }

func openDocs(b *Tab, path, heading string) Docs {
	b.t.Helper()
	b.Open(path)
	b.ExpectPath(path)
	b.must(b.expect.Locator(b.Page.GetByRole("heading", playwright.PageGetByRoleOptions{
		Name: heading, Exact: playwright.Bool(true), Level: playwright.Int(1),
	})).ToBeVisible(), "expect the heading %s", heading)
	return Docs{b}
}

// Example returns the code of an example, also of one behind a tab.
func (d Docs) Example(name string) string {
	d.t.Helper()
	code, err := d.Page.GetByRole("region", playwright.PageGetByRoleOptions{
		Name: name + " example", Exact: playwright.Bool(true), IncludeHidden: playwright.Bool(true),
	}).TextContent()
	d.must(err, "read the example %s", name)
	return code
}

// CopyCurl presses the button that copies the command of an operation.
func (d Docs) CopyCurl(operation string) {
	d.t.Helper()
	d.click(d.role("button", "Copy curl for "+operation), "Copy curl")
	d.ExpectStatusSaying("Copied the curl command")
}

// Follow follows a link of the contents.
func (d Docs) Follow(link string) {
	d.t.Helper()
	d.click(d.entry(link), link)
}

// entry returns a link of the contents. Its name may begin with a method.
func (d Docs) entry(name string) playwright.Locator {
	return d.role("navigation", "Contents").GetByRole("link", playwright.LocatorGetByRoleOptions{
		Name: regexp.MustCompile(`^([A-Z]+ )?` + regexp.QuoteMeta(name) + `$`),
	})
}
