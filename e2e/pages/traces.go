package pages

import (
	"fmt"
	"strings"
	"time"

	"github.com/playwright-community/playwright-go"
)

// ExpectNowhere makes sure that secret stands neither in the page's markup nor in what its fields hold, nor in its
// address or title.
func (b *Tab) ExpectNowhere(secret string) {
	b.t.Helper()
	if n := b.Occurrences(secret); n > 0 {
		b.t.Errorf("%s still shows the key, %d times", b.Page.URL(), n)
	}
}

// Occurrences counts the places of the page that hold text: markup, values of fields, address, title.
func (b *Tab) Occurrences(text string) int {
	b.t.Helper()
	var content string
	var err error
	for range 20 {
		// A page that has just been gone back to may be on its way to another.
		if content, err = b.Page.Content(); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.must(err, "read the page")
	n := strings.Count(content, text) + strings.Count(b.Page.URL(), text)
	typed, err := b.Page.GetByRole("textbox", playwright.PageGetByRoleOptions{IncludeHidden: playwright.Bool(true)}).
		EvaluateAll(`fields => fields.filter(f => f.value !== f.getAttribute("value")).map(f => f.value).join("\n")`)
	b.must(err, "read the fields")
	return n + strings.Count(fmt.Sprint(typed), text)
}

// ExpectEmptyStorage makes sure that the site has left nothing in the browser's storages.
func (b *Tab) ExpectEmptyStorage() {
	b.t.Helper()
	if !strings.HasPrefix(b.Page.URL(), b.Site) {
		return // a page of the browser's own, which has no storages
	}
	kept, err := b.Page.Evaluate(`() => [...Object.keys(localStorage), ...Object.keys(sessionStorage)].join(", ")`)
	if err != nil {
		b.t.Errorf("look into the storages: %v", err)
	}
	if kept != "" {
		b.t.Errorf("the browser's storages hold: %v", kept)
	}
}

// Clipboard is the text on the clipboard; the profile must allow reading it.
func (b *Tab) Clipboard() string {
	b.t.Helper()
	text, err := b.Page.Evaluate(`() => navigator.clipboard.readText()`)
	b.must(err, "read the clipboard")
	return fmt.Sprint(text)
}
