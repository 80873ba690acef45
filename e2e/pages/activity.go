package pages

import (
	"regexp"
	"strings"

	"github.com/playwright-community/playwright-go"
)

// Activity is the page at /activity.
type Activity struct{ Frame }

// OpenActivity opens the page.
func OpenActivity(b *Tab) Activity {
	b.open("/activity", "Activity")
	return Activity{Frame{b}}
}

// Entries returns the text of the entries, in the page's order.
func (a Activity) Entries() []string {
	main := a.In("main", "")
	entries := main.find("listitem", "").Or(main.find("row", ""))
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
	all := strings.Join(a.Entries(), "\n")
	if !regexp.MustCompile("(?s)" + strings.Join(newestFirst, ".*")).MatchString(all) {
		a.t.Errorf("%s: no entries match %q in this order:\n%s", callerInTest(), newestFirst, all)
	}
}

// Filter shows only entries of a kind. There may be none.
func (a Activity) Filter(kind string) {
	a.Choose("What", kind)
	if a.JavaScript {
		a.ExpectText(`entr(y|ies) shown`)
	} else {
		a.Click("Filter")
	}
	a.ExpectHeading("Activity")
}

// Search shows only entries with a text. With JavaScript the field keeps the focus.
func (a Activity) Search(text string) {
	a.must(a.find("searchbox", "Search").Fill(text), "fill in the search")
	if a.JavaScript {
		a.ExpectFocus("searchbox", "Search")
	} else {
		a.Click("Filter")
	}
}

// Export downloads the entries as CSV and returns the path of the file.
func (a Activity) Export() string { return a.download("link", "Download CSV") }

// download presses a control that saves a file, and returns the path of the file.
func (b *Tab) download(role playwright.AriaRole, name string) string {
	download, err := b.Page.ExpectDownload(func() error { return b.find(role, name).Click() })
	b.must(err, "download by %q", name)
	path, err := download.Path()
	b.must(err, "find the download")
	return path
}
