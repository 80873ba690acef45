package pages

import (
	"github.com/playwright-community/playwright-go"
)

// Press presses a key, such as "Escape" or "Control+A", on the focused element.
func (b *Tab) Press(key string) {
	b.t.Helper()
	b.must(b.Page.Keyboard().Press(key), "press %s", key)
}

// TypeText types text on the keyboard into the focused element.
func (b *Tab) TypeText(text string) {
	b.t.Helper()
	b.must(b.Page.Keyboard().Type(text), "type %q", text)
}

// TabTo presses key, which is Tab or Shift+Tab, until the focus is on an element with this role and
// name.
func (b *Tab) TabTo(key string, role playwright.AriaRole, name string) {
	b.t.Helper()
	target := b.role(role, name).First()
	b.visible(target, "%s %q", string(role), name)
	for range 40 {
		b.Press(key)
		focused, err := target.Evaluate(`e => e === document.activeElement`, nil)
		b.must(err, "read the focused element")
		if focused == true {
			return
		}
	}
	b.t.Fatalf("%s never reaches the %s %q", key, string(role), name)
}

// ExpectFocus waits until the element with this role and name has the focus.
func (b *Tab) ExpectFocus(role playwright.AriaRole, name string) {
	b.t.Helper()
	b.focused(b.role(role, name).First(), "%s %q", string(role), name)
}

// ExpectFocusInPage checks that an element of the page has the focus.
func (b *Tab) ExpectFocusInPage() {
	b.t.Helper()
	lost, err := b.Page.Evaluate(`() => document.activeElement === null || document.activeElement === document.body`)
	b.must(err, "read the focused element")
	if lost == true {
		b.t.Error("no element of the page has the focus")
	}
}
