package pages

import (
	"fmt"
	"strings"
	"time"

	"github.com/playwright-community/playwright-go"
)

// ExpectNowhere checks that secret is not in the page's markup, title, URL or field values.
func (b *Tab) ExpectNowhere(secret string) {
	b.t.Helper()
	if n := b.Occurrences(secret); n > 0 {
		b.t.Errorf("%s still contains the key, %d times", b.Page.URL(), n)
	}
}

// Occurrences counts how often text occurs in the page's markup, title, URL and field values.
func (b *Tab) Occurrences(text string) int {
	b.t.Helper()
	var content string
	var err error
	for range 20 {
		// After going back, a page may still redirect to another.
		if content, err = b.Page.Content(); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.must(err, "read the page")
	n := strings.Count(content, text) + strings.Count(b.Page.URL(), text)
	values, err := b.Page.GetByRole("textbox", playwright.PageGetByRoleOptions{IncludeHidden: playwright.Bool(true)}).
		EvaluateAll(`fields => fields.filter(f => f.value !== f.getAttribute("value")).map(f => f.value).join("\n")`)
	b.must(err, "read the fields")
	return n + strings.Count(fmt.Sprint(values), text)
}

// ExpectEmptyStorage checks that the site has stored nothing in localStorage or sessionStorage.
func (b *Tab) ExpectEmptyStorage() {
	b.t.Helper()
	if !strings.HasPrefix(b.Page.URL(), b.Site) {
		return // a page of the browser itself, without storage
	}
	kept, err := b.Page.Evaluate(`() => [...Object.keys(localStorage), ...Object.keys(sessionStorage)].join(", ")`)
	if err != nil {
		b.t.Errorf("read the storage: %v", err)
	}
	if kept != "" {
		b.t.Errorf("the browser's storage has: %v", kept)
	}
}

// Clipboard returns the text on the clipboard. The browser profile must allow it.
func (b *Tab) Clipboard() string {
	b.t.Helper()
	text, err := b.Page.Evaluate(`() => navigator.clipboard.readText()`)
	b.must(err, "read the clipboard")
	return fmt.Sprint(text)
}
