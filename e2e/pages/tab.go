// Package pages has the page objects of the browser tests. Each method is a user's action or
// expectation on a page. The page objects find elements by role and accessible name, which are part
// of the portal's contract, so layout and markup may change. They work with JavaScript on and off.
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

// Tab is a browser tab on one site. Its methods, and those of every page object, end the test if
// they fail.
type Tab struct {
	// Page is for actions that no page object has.
	Page playwright.Page
	// Site is the portal's URL without a path.
	Site string
	// JavaScript reports whether the browser runs JavaScript.
	JavaScript bool

	t       testing.TB
	expect  playwright.PlaywrightAssertions
	timeout float64 // milliseconds
}

// NewTab returns a tab whose expectations fail after timeout milliseconds.
func NewTab(t testing.TB, page playwright.Page, site string, javaScript bool, timeout float64) *Tab {
	return &Tab{
		Page: page, Site: site, JavaScript: javaScript,
		t: t, expect: playwright.NewPlaywrightAssertions(timeout), timeout: timeout,
	}
}

// patience returns how long an expectation may take.
func (b *Tab) patience() time.Duration { return time.Duration(b.timeout) * time.Millisecond }

func (b *Tab) must(err error, doing string, arguments ...any) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("%s: %v", fmt.Sprintf(doing, arguments...), err)
	}
}

// Open opens path and follows redirects.
func (b *Tab) Open(path string) {
	b.t.Helper()
	_, err := b.Page.Goto(b.Site + path)
	b.must(err, "open %s", path)
}

// Reload reloads the page. If the page is the response to a form, this sends the form again.
func (b *Tab) Reload() {
	b.t.Helper()
	_, err := b.Page.Reload()
	b.must(err, "reload")
}

// Back goes back one page. The browser may refuse to show the response to a form again. This is not
// an error.
func (b *Tab) Back() { b.t.Helper(); b.move("back", -1) }

// Forward undoes Back.
func (b *Tab) Forward() { b.t.Helper(); b.move("forward", +1) }

// LookAgain sends the event that the page gets when the user returns to this tab.
func (b *Tab) LookAgain() {
	b.t.Helper()
	_, err := b.Page.Evaluate(`() => document.dispatchEvent(new Event("visibilitychange"))`)
	b.must(err, "come back to the tab")
}

func (b *Tab) move(direction string, by int) {
	b.t.Helper()
	// A page from the back/forward cache fires no load event.
	var err error
	if by < 0 {
		_, err = b.Page.GoBack(playwright.PageGoBackOptions{WaitUntil: playwright.WaitUntilStateCommit})
	} else {
		_, err = b.Page.GoForward(playwright.PageGoForwardOptions{WaitUntil: playwright.WaitUntilStateCommit})
	}
	if err != nil && !strings.Contains(err.Error(), "ERR_CACHE_MISS") {
		b.must(err, "go %s", direction)
	}
	for deadline := time.Now().Add(b.patience()); time.Now().Before(deadline); time.Sleep(25 * time.Millisecond) {
		state, err := b.Page.Evaluate(`() => document.readyState`)
		if err == nil && state == "complete" {
			return
		}
	}
	b.t.Fatalf("go %s: the page does not finish loading", direction)
}

// Path returns the path of the tab's URL.
func (b *Tab) Path() string {
	u, err := url.Parse(b.Page.URL())
	b.must(err, "read the address")
	return u.Path
}

// ExpectPath waits until the tab has loaded path, with any query but an empty one.
func (b *Tab) ExpectPath(path string) {
	b.t.Helper()
	pattern := regexp.MustCompile("^" + regexp.QuoteMeta(b.Site+path) + `(\?.|#|$)`)
	b.must(b.expect.Page(b.Page).ToHaveURL(pattern), "wait for %s", path)
	b.settled()
}

// settled waits until the page's scripts have loaded. An earlier click would act as in a browser
// without JavaScript.
func (b *Tab) settled() {
	b.t.Helper()
	b.must(b.Page.WaitForLoadState(), "wait for the page to load")
}

// ExpectHeading waits until the page shows this heading.
func (b *Tab) ExpectHeading(name string) {
	b.t.Helper()
	b.visible(b.role("heading", name), "heading %q", name)
	b.settled()
}

// TryAgain presses Try again on an error page.
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
	b.must(target.Click(playwright.LocatorClickOptions{Timeout: playwright.Float(b.timeout)}), "press %s", what)
}

func (b *Tab) fill(target playwright.Locator, value, what string) {
	b.t.Helper()
	b.must(target.Fill(value, playwright.LocatorFillOptions{Timeout: playwright.Float(b.timeout)}), "fill in %s", what)
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
