package pages

import (
	"regexp"
	"strings"

	"github.com/playwright-community/playwright-go"
)

// ExpectAlert waits for an alert with text and returns the text.
func (b *Tab) ExpectAlert() string {
	b.t.Helper()
	return b.message("alert", regexp.MustCompile(`\S`))
}

// ExpectAlertSaying waits for an alert that matches pattern and returns its whole text.
func (b *Tab) ExpectAlertSaying(pattern string) string {
	b.t.Helper()
	return b.message("alert", regexp.MustCompile(pattern))
}

// ExpectStatusSaying waits for a status that matches pattern and returns its whole text.
func (b *Tab) ExpectStatusSaying(pattern string) string {
	b.t.Helper()
	return b.message("status", regexp.MustCompile(pattern))
}

// ExpectOneStatus checks that the page has exactly one status region.
func (b *Tab) ExpectOneStatus() {
	b.t.Helper()
	b.must(b.expect.Locator(b.Page.GetByRole("status")).ToHaveCount(1), "expect one status")
}

// ExpectMessageSaying waits for an alert or a status that matches pattern.
func (b *Tab) ExpectMessageSaying(pattern string) {
	b.t.Helper()
	message := b.Page.GetByRole("alert").Or(b.Page.GetByRole("status"))
	b.visible(message.Filter(playwright.LocatorFilterOptions{HasText: regexp.MustCompile(pattern)}).First(), "message saying %s", pattern)
}

func (b *Tab) message(role playwright.AriaRole, pattern *regexp.Regexp) string {
	b.t.Helper()
	message := b.Page.GetByRole(role).Filter(playwright.LocatorFilterOptions{HasText: pattern}).First()
	b.visible(message, "%s saying %s", string(role), pattern)
	text, err := message.InnerText()
	b.must(err, "read the %s", string(role))
	return strings.TrimSpace(text)
}

// ExpectNoAlert waits until no alert has text.
func (b *Tab) ExpectNoAlert() {
	b.t.Helper()
	alerts := b.Page.GetByRole("alert").Filter(playwright.LocatorFilterOptions{HasText: regexp.MustCompile(`\S`)})
	b.must(b.expect.Locator(alerts).ToHaveCount(0), "expect no alert")
}

// ExpectTextSaying waits for text on the page that matches pattern.
func (b *Tab) ExpectTextSaying(pattern string) {
	b.t.Helper()
	b.visible(b.Page.GetByText(regexp.MustCompile(pattern)).First(), "text saying %s", pattern)
}
