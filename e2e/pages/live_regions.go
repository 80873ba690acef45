package pages

import (
	"strings"
	"time"
)

// LiveRegions are the status regions that a page had at one moment. Screen readers announce text
// that appears in an existing region. They often miss a new region that already has text.
type LiveRegions struct{ tab *Tab }

// LiveRegions returns the page's current status regions.
func (b *Tab) LiveRegions() LiveRegions {
	b.t.Helper()
	n, err := b.Page.GetByRole("status").EvaluateAll(`regions => regions.map(region => region.existedBefore = true).length`)
	b.must(err, "find the live regions")
	if n == 0 {
		b.t.Error("the page has no live region before the first announcement")
	}
	return LiveRegions{tab: b}
}

// ExpectAnnounced waits until the text of one of the regions matches pattern, without regard to
// case. The region must still be part of the page.
func (l LiveRegions) ExpectAnnounced(pattern string) {
	l.tab.t.Helper()
	l.tab.ExpectStatusSaying(pattern)
	deadline := time.Now().Add(l.tab.patience())
	for {
		announced, err := l.tab.Page.GetByRole("status").EvaluateAll(
			`(regions, pattern) => regions.some(region => region.existedBefore && new RegExp(pattern, "i").test(region.textContent))`,
			strings.TrimPrefix(pattern, "(?i)"))
		l.tab.must(err, "read the live regions")
		if announced == true {
			return
		}
		if time.Now().After(deadline) {
			l.tab.t.Errorf("no text that matches %q appeared in an existing live region", pattern)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
