package pages

import (
	"strings"
	"time"
)

// LiveRegions are the status regions that a page had at one moment. Screen readers announce what appears in a region
// that was already there, and mostly miss a region that arrives with its text.
type LiveRegions struct{ tab *Tab }

// LiveRegions are the page's status regions as of now.
func (b *Tab) LiveRegions() LiveRegions {
	b.t.Helper()
	n, err := b.Page.GetByRole("status").EvaluateAll(`regions => regions.map(region => region.wasThere = true).length`)
	b.must(err, "find the live regions")
	if n == 0 {
		b.t.Error("the page has no live region before there is anything to say")
	}
	return LiveRegions{tab: b}
}

// ExpectSaid waits until one of the regions, still part of the page, says something that matches pattern, which is
// compared without case.
func (l LiveRegions) ExpectSaid(pattern string) {
	l.tab.t.Helper()
	l.tab.ExpectStatusSaying(pattern)
	deadline := time.Now().Add(time.Second)
	for {
		said, err := l.tab.Page.GetByRole("status").EvaluateAll(
			`(regions, pattern) => regions.some(region => region.wasThere && new RegExp(pattern, "i").test(region.textContent))`,
			strings.TrimPrefix(pattern, "(?i)"))
		l.tab.must(err, "read the live regions")
		if said == true {
			return
		}
		if time.Now().After(deadline) {
			l.tab.t.Errorf("what matches %q was not said in a live region that was already there", pattern)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
