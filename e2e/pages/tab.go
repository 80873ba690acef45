// Package pages has the page objects of the browser tests, which work with JavaScript on and off.
// Each method is a user's action or expectation on a page. A method that submits a form leaves the
// result to the caller, unless its comment says otherwise. Because the page objects find elements
// by role and accessible name, which are part of the portal's contract, layout and markup may
// change.
package pages

import (
	"fmt"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"
)

// Tab is a browser tab on one site. Its methods, and those of every page object, end the test if
// they fail.
type Tab struct {
	// Area is the whole page.
	Area
	// Page is for actions that no page object has.
	Page playwright.Page
	// Site is the portal's URL without a path.
	Site string
	// JavaScript reports whether the browser runs JavaScript.
	JavaScript bool

	t        testing.TB
	expect   playwright.PlaywrightAssertions
	patience time.Duration // of an expectation
}

// NewTab returns a tab whose expectations fail after timeout milliseconds.
func NewTab(t testing.TB, page playwright.Page, site string, javaScript bool, timeout float64) *Tab {
	b := &Tab{
		Page: page, Site: site, JavaScript: javaScript, t: t,
		expect: playwright.NewPlaywrightAssertions(timeout), patience: time.Duration(timeout) * time.Millisecond,
	}
	b.Area = Area{b, page.Locator(":root")}
	return b
}

// must ends the test if err is not nil. The message begins with the line of the test.
func (b *Tab) must(err error, doing string, arguments ...any) {
	if err != nil {
		b.t.Fatalf("%s: %s: %v", callerInTest(), fmt.Sprintf(doing, arguments...), err)
	}
}

// callerInTest returns the file and the line of the innermost caller in a test file.
func callerInTest() string {
	callers := make([]uintptr, 30)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.File, "_test.go") {
			return fmt.Sprintf("%s:%d", frame.File[strings.LastIndexByte(frame.File, '/')+1:], frame.Line)
		}
		if !more {
			return "outside of a test"
		}
	}
}

// eventually waits until holds returns true.
func (b *Tab) eventually(what string, holds func() bool) {
	for deadline := time.Now().Add(b.patience); !holds(); time.Sleep(25 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: expect %s: timeout", callerInTest(), what)
		}
	}
}

// Open opens path and follows redirects.
func (b *Tab) Open(path string) {
	_, err := b.Page.Goto(b.Site + path)
	b.must(err, "open %s", path)
}

func (b *Tab) open(path, heading string) {
	b.Open(path)
	b.expectPage(path, heading)
}

func (b *Tab) expectPage(path, heading string) {
	b.ExpectPath(path)
	b.ExpectHeading(heading)
}

// Reload reloads the page. If the page is the response to a form, this sends the form again.
func (b *Tab) Reload() {
	_, err := b.Page.Reload()
	b.must(err, "reload")
}

// Back goes back one page. If the browser refuses to show the response to a form again, Back does
// not fail.
func (b *Tab) Back() {
	// A page from the back/forward cache fires no load event.
	_, err := b.Page.GoBack(playwright.PageGoBackOptions{WaitUntil: playwright.WaitUntilStateCommit})
	b.moved("back", err)
}

// Forward undoes Back.
func (b *Tab) Forward() {
	_, err := b.Page.GoForward(playwright.PageGoForwardOptions{WaitUntil: playwright.WaitUntilStateCommit})
	b.moved("forward", err)
}

func (b *Tab) moved(direction string, err error) {
	if err != nil && !strings.Contains(err.Error(), "ERR_CACHE_MISS") {
		b.must(err, "go %s", direction)
	}
	b.eventually("the page to load after going "+direction, func() bool {
		state, err := b.Page.Evaluate(`() => document.readyState`)
		return err == nil && state == "complete"
	})
}

// LookAgain sends the event that the page gets when the user returns to this tab.
func (b *Tab) LookAgain() {
	b.Evaluate(`() => { document.dispatchEvent(new Event("visibilitychange")) }`)
}

// Evaluate runs a JavaScript function in the page and returns its result.
func (b *Tab) Evaluate(function string) any {
	result, err := b.Page.Evaluate(function)
	b.must(err, "evaluate %s", function)
	return result
}

// Path returns the path of the tab's URL.
func (b *Tab) Path() string {
	u, err := url.Parse(b.Page.URL())
	b.must(err, "read the address")
	return u.Path
}

// ExpectPath waits until the tab has loaded path, with any query but an empty one.
func (b *Tab) ExpectPath(path string) {
	pattern := regexp.MustCompile("^" + regexp.QuoteMeta(b.Site+path) + `(\?.|#|$)`)
	b.must(b.expect.Page(b.Page).ToHaveURL(pattern), "wait for %s", path)
	b.settled()
}

// settled waits until the page's scripts have loaded. An earlier click would act as in a browser
// without JavaScript.
func (b *Tab) settled() { b.must(b.Page.WaitForLoadState(), "wait for the page to load") }

// ExpectHeading waits until the page shows this heading.
func (b *Tab) ExpectHeading(name string) {
	b.Expect("heading", name)
	b.settled()
}

// TryAgain presses Try again on an error page.
func (b *Tab) TryAgain() {
	b.Click("Try again")
	b.settled()
}

// Press presses a key, such as "Escape" or "Control+A", on the focused element.
func (b *Tab) Press(key string) { b.must(b.Page.Keyboard().Press(key), "press %s", key) }

// TypeText types text on the keyboard into the focused element.
func (b *Tab) TypeText(text string) { b.must(b.Page.Keyboard().Type(text), "type %q", text) }

// TabTo presses key, which is Tab or Shift+Tab, until the focus is on an element with this role and
// name.
func (b *Tab) TabTo(key string, role playwright.AriaRole, name string) {
	target := b.find(role, name).First()
	b.visible(target, "%s %q", role, name)
	for range 40 {
		b.Press(key)
		if (Area{b, target}).measure(`e => e === document.activeElement`) == true {
			return
		}
	}
	b.t.Fatalf("%s: %s never reaches the %s %q", callerInTest(), key, role, name)
}

// ExpectFocusInPage checks that an element of the page has the focus.
func (b *Tab) ExpectFocusInPage() {
	if b.Evaluate(`() => document.activeElement === null || document.activeElement === document.body`) == true {
		b.t.Errorf("%s: no element of the page has the focus", callerInTest())
	}
}

// ExpectNowhere checks that secret is not in the page's markup, title, URL or field values.
func (b *Tab) ExpectNowhere(secret string) {
	if n := b.Occurrences(secret); n > 0 {
		b.t.Errorf("%s: %s still contains the key, %d times", callerInTest(), b.Page.URL(), n)
	}
}

// Occurrences counts how often text occurs in the page's markup, title, URL and field values.
func (b *Tab) Occurrences(text string) int {
	var content string
	b.eventually("the content of the page", func() (readable bool) {
		// After going back, a page may still redirect to another.
		var err error
		content, err = b.Page.Content()
		return err == nil
	})
	fields := b.Page.GetByRole("textbox", playwright.PageGetByRoleOptions{IncludeHidden: playwright.Bool(true)})
	values, err := fields.EvaluateAll(`fields => fields.filter(f => f.value !== f.getAttribute("value")).map(f => f.value).join("\n")`)
	b.must(err, "read the fields")
	return strings.Count(content, text) + strings.Count(b.Page.URL(), text) + strings.Count(fmt.Sprint(values), text)
}

// ExpectEmptyStorage checks that the site has stored nothing in localStorage or sessionStorage.
func (b *Tab) ExpectEmptyStorage() {
	if !strings.HasPrefix(b.Page.URL(), b.Site) {
		return // a page of the browser itself, without storage
	}
	var kept any
	b.eventually("the browser's storage", func() (readable bool) {
		// A navigation that is under way ends the script.
		var err error
		kept, err = b.Page.Evaluate(`() => [...Object.keys(localStorage), ...Object.keys(sessionStorage)].join(", ")`)
		return err == nil
	})
	if kept != "" {
		b.t.Errorf("the browser's storage has: %v", kept)
	}
}

// Clipboard returns the text on the clipboard. The browser profile must allow it.
func (b *Tab) Clipboard() string {
	return fmt.Sprint(b.Evaluate(`() => navigator.clipboard.readText()`))
}

// ExpectAnnounced does something and waits until a status says what matches pattern, without regard
// to case. Screen readers announce text only in a region that the page had before.
func (b *Tab) ExpectAnnounced(pattern string, do func()) {
	_, err := b.find("status", "").EvaluateAll(`regions => regions.forEach(region => region.existedBefore = true)`)
	b.must(err, "find the live regions")
	do()
	b.eventually("an announcement that matches "+pattern, func() bool {
		announced, err := b.find("status", "").EvaluateAll(
			`(regions, pattern) => regions.some(r => r.existedBefore && new RegExp(pattern, "i").test(r.textContent))`, pattern)
		b.must(err, "read the live regions")
		return announced == true
	})
}
