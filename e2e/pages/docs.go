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

// Search enters words into the search.
func (d Docs) Search(words string) {
	d.t.Helper()
	d.fill(d.role("searchbox", "Search"), words, "the search")
}

// ExpectFound checks how many results the search announces, and that one of them is shown.
func (d Docs) ExpectFound(count, link string) {
	d.t.Helper()
	d.ExpectStatusSaying(count)
	if link != "" {
		d.visible(d.entry(link), "the result %s", link)
	}
}

// ExpectNotFound checks that the search hides an entry of the contents.
func (d Docs) ExpectNotFound(link string) {
	d.t.Helper()
	d.hidden(d.entry(link), "the entry %s", link)
}

// entry returns a link of the contents. Its name may begin with a method.
func (d Docs) entry(name string) playwright.Locator {
	return d.role("navigation", "Contents").GetByRole("link", playwright.LocatorGetByRoleOptions{
		Name: regexp.MustCompile(`^([A-Z]+ )?` + regexp.QuoteMeta(name) + `$`),
	})
}

// TryIt is the panel that sends a request of one operation.
type TryIt struct {
	*Tab
	panel   playwright.Locator
	summary playwright.Locator
}

// TryIt opens the panel of an operation.
func (d Docs) TryIt(operation string) TryIt {
	d.t.Helper()
	article := d.role("article", operation)
	t := TryIt{Tab: d.Tab, panel: article, summary: article.GetByText("Try it", playwright.LocatorGetByTextOptions{Exact: playwright.Bool(true)})}
	t.click(t.summary, "Try it")
	return t
}

// Key enters an API key.
func (t TryIt) Key(key string) { t.t.Helper(); t.fill(t.key(), key, "API key") }

// Body enters a request body.
func (t TryIt) Body(body string) {
	t.t.Helper()
	t.fill(within(t.panel, "textbox", "Request body"), body, "the body")
}

// Send sends the request and returns the response's text, once its status has arrived.
func (t TryIt) Send(operation, status string) string {
	t.t.Helper()
	t.click(within(t.panel, "button", "Send request"), "Send request")
	t.visible(t.panel.GetByRole("status").Filter(playwright.LocatorFilterOptions{HasText: status}), "the status %s", status)
	text, err := within(t.panel, "region", "Response of "+operation).TextContent()
	t.must(err, "read the response")
	return text
}

// Close closes the panel.
func (t TryIt) Close() { t.t.Helper(); t.click(t.summary, "Try it") }

// Open opens the panel again.
func (t TryIt) Open() { t.t.Helper(); t.click(t.summary, "Try it") }

// ExpectNoKey checks that the field of the key is empty.
func (t TryIt) ExpectNoKey() {
	t.t.Helper()
	t.must(t.expect.Locator(t.key()).ToHaveValue(""), "expect no key")
}

func (t TryIt) key() playwright.Locator { return within(t.panel, "textbox", "API key") }
