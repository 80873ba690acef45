package pages

import (
	"regexp"
	"strings"

	"github.com/playwright-community/playwright-go"
)

// Activity is the page at /activity.
type Activity struct{ Frame }

// OpenActivity opens the page. The visitor must be signed in.
func OpenActivity(b *Tab) Activity {
	b.t.Helper()
	b.Open("/activity")
	b.ExpectPath("/activity")
	b.ExpectHeading("Activity")
	return Activity{Frame{b}}
}

// Entries returns the text of the entries, in the page's order.
func (a Activity) Entries() []string {
	a.t.Helper()
	main := a.Page.GetByRole("main")
	entries := main.GetByRole("listitem").Or(main.GetByRole("row"))
	a.visible(entries.First(), "an entry")
	texts, err := entries.AllInnerTexts()
	a.must(err, "read the entries")
	for i, text := range texts {
		texts[i] = strings.Join(strings.Fields(text), " ")
	}
	return texts
}

// ExpectInOrder checks that the entries match the patterns in this order, newest first. Other
// entries may be between.
func (a Activity) ExpectInOrder(newestFirst ...string) {
	a.t.Helper()
	entries := a.Entries()
	next := 0
	for _, entry := range entries {
		if next < len(newestFirst) && regexp.MustCompile(newestFirst[next]).MatchString(entry) {
			next++
		}
	}
	if next < len(newestFirst) {
		a.t.Errorf("no entry matches %q after the entries before it, in:\n%s", newestFirst[next], strings.Join(entries, "\n"))
	}
}

// Filter shows only entries of a kind. There may be none.
func (a Activity) Filter(kind string) {
	a.t.Helper()
	_, err := a.role("combobox", "Show").SelectOption(playwright.SelectOptionValues{Labels: &[]string{kind}})
	a.must(err, "choose the kind %s", kind)
	a.click(a.role("button", "Filter"), "Filter")
	a.settled()
	a.ExpectHeading("Activity")
}

// Export downloads the entries as CSV and returns the path of the file.
func (a Activity) Export() string {
	a.t.Helper()
	download, err := a.Page.ExpectDownload(func() error { return a.role("link", "Export CSV").Click() })
	a.must(err, "download the activity")
	path, err := download.Path()
	a.must(err, "find the download")
	return path
}
