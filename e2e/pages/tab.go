// Package pages holds the page objects of the browser suite: what a visitor can do on each page of the portal, in the
// visitor's words. Elements are found by role and accessible name alone, which are the portal's contract; the way the
// pages look and how they are built may change under it. The same objects serve with JavaScript on and off.
package pages

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"
)

// Tab is one tab of a browser, looking at one site. Its methods, and those of every page object, end the test when
// the page does not let them do what they say.
type Tab struct {
	// Page is for what no page object expresses.
	Page playwright.Page
	// Site is the address of the portal, without a path.
	Site string
	// JavaScript tells whether the browser runs scripts.
	JavaScript bool

	t        testing.TB
	expect   playwright.PlaywrightAssertions
	patience float64 // milliseconds
}

// NewTab returns a tab whose expectations may take up to patience milliseconds to come true.
func NewTab(t testing.TB, page playwright.Page, site string, javaScript bool, patience float64) *Tab {
	return &Tab{
		Page: page, Site: site, JavaScript: javaScript,
		t: t, expect: playwright.NewPlaywrightAssertions(patience), patience: patience,
	}
}

func (b *Tab) must(err error, doing string, arguments ...any) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("%s: %v", fmt.Sprintf(doing, arguments...), err)
	}
}

// Open goes to path, by way of whatever redirects there are.
func (b *Tab) Open(path string) {
	b.t.Helper()
	_, err := b.Page.Goto(b.Site + path)
	b.must(err, "open %s", path)
}

// Reload loads the page again, sending a form again if the page answered one.
func (b *Tab) Reload() {
	b.t.Helper()
	_, err := b.Page.Reload()
	b.must(err, "reload")
}

// Back goes back one page. A page that the browser refuses to show again, because it answered a form, counts as
// having gone back.
func (b *Tab) Back() { b.t.Helper(); b.move("back", -1) }

// Forward undoes Back.
func (b *Tab) Forward() { b.t.Helper(); b.move("forward", +1) }

func (b *Tab) move(direction string, by int) {
	b.t.Helper()
	// A page out of the back/forward cache has loaded before: no load event follows.
	var err error
	if by < 0 {
		_, err = b.Page.GoBack(playwright.PageGoBackOptions{WaitUntil: playwright.WaitUntilStateCommit})
	} else {
		_, err = b.Page.GoForward(playwright.PageGoForwardOptions{WaitUntil: playwright.WaitUntilStateCommit})
	}
	if err != nil && !strings.Contains(err.Error(), "ERR_CACHE_MISS") {
		b.must(err, "go %s", direction)
	}
	for range 200 {
		state, err := b.Page.Evaluate(`() => document.readyState`)
		if err == nil && state == "complete" {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	b.t.Fatalf("go %s: the page does not finish loading", direction)
}

// Path is the address that the tab shows, without the site.
func (b *Tab) Path() string {
	u, err := url.Parse(b.Page.URL())
	b.must(err, "read the address")
	return u.Path
}

// ExpectPath waits until the tab shows path, with whatever query, and has loaded it.
func (b *Tab) ExpectPath(path string) {
	b.t.Helper()
	pattern := regexp.MustCompile("^" + regexp.QuoteMeta(b.Site+path) + `(\?|#|$)`)
	b.must(b.expect.Page(b.Page).ToHaveURL(pattern), "wait for %s", path)
	b.settled()
}

// settled waits for the scripts of a page just reached: before them, a click does what it does without JavaScript.
func (b *Tab) settled() {
	b.t.Helper()
	b.must(b.Page.WaitForLoadState(), "wait for the page to load")
}

// ExpectHeading waits for the page's heading.
func (b *Tab) ExpectHeading(name string) {
	b.t.Helper()
	b.visible(b.role("heading", name), "heading %q", name)
	b.settled()
}

// TryAgain presses the button of a page that tells of a failure.
func (b *Tab) TryAgain() {
	b.t.Helper()
	b.click(b.role("button", "Try again"), "Try again")
	b.settled()
}

func (b *Tab) role(role playwright.AriaRole, name string) playwright.Locator {
	return b.Page.GetByRole(role, playwright.PageGetByRoleOptions{Name: name, Exact: playwright.Bool(true)})
}

func within(outer playwright.Locator, role playwright.AriaRole, name string) playwright.Locator {
	return outer.GetByRole(role, playwright.LocatorGetByRoleOptions{Name: name, Exact: playwright.Bool(true)})
}

func (b *Tab) click(target playwright.Locator, what string) {
	b.t.Helper()
	b.must(target.Click(playwright.LocatorClickOptions{Timeout: playwright.Float(b.patience)}), "press %s", what)
}

func (b *Tab) fill(target playwright.Locator, value, what string) {
	b.t.Helper()
	b.must(target.Fill(value, playwright.LocatorFillOptions{Timeout: playwright.Float(b.patience)}), "fill in %s", what)
}

func (b *Tab) visible(target playwright.Locator, what string, arguments ...any) {
	b.t.Helper()
	b.must(b.expect.Locator(target).ToBeVisible(), "expect "+what, arguments...)
}

func (b *Tab) hidden(target playwright.Locator, what string, arguments ...any) {
	b.t.Helper()
	b.must(b.expect.Locator(target).ToBeHidden(), "expect no "+what, arguments...)
}

func (b *Tab) focused(target playwright.Locator, what string, arguments ...any) {
	b.t.Helper()
	b.must(b.expect.Locator(target).ToBeFocused(), "expect focus on "+what, arguments...)
}
