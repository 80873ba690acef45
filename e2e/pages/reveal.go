package pages

import (
	"regexp"

	"github.com/playwright-community/playwright-go"
)

// Reveal shows a new key once: a dialog with JavaScript, a page without.
type Reveal struct {
	*Tab
	root playwright.Locator
}

// ExpectReveal waits for the reveal of a new key.
func ExpectReveal(b *Tab) Reveal {
	b.t.Helper()
	r := Reveal{Tab: b, root: b.role("dialog", "API key generated")}
	if !b.JavaScript {
		b.ExpectHeading("API key generated")
		r.root = b.Page.GetByRole("main")
	}
	b.visible(r.field(), "the key")
	return r
}

// Key returns the whole key.
func (r Reveal) Key() string {
	r.t.Helper()
	value, err := r.field().InputValue()
	r.must(err, "read the key")
	return value
}

// ExpectReadOnly checks that the field with the key is read-only.
func (r Reveal) ExpectReadOnly() {
	r.t.Helper()
	r.must(r.expect.Locator(r.field()).Not().ToBeEditable(), "expect the key to be read-only")
}

// Copy presses Copy key.
func (r Reveal) Copy() {
	r.t.Helper()
	r.click(within(r.root, "button", "Copy key"), "Copy key")
}

// CopyLine presses the button that copies the line for an .env file.
func (r Reveal) CopyLine() {
	r.t.Helper()
	r.click(within(r.root, "button", "Copy .env line"), "Copy .env line")
}

// CopyByHand selects the key and copies it with the keyboard.
func (r Reveal) CopyByHand() {
	r.t.Helper()
	r.must(r.field().Focus(), "focus the key's field")
	r.Press("Control+A")
	r.Press("Control+C")
}

// CopyEverything selects and copies everything while a button has the focus.
func (r Reveal) CopyEverything() {
	r.t.Helper()
	r.must(within(r.root, "button", "Copy key").Focus(), "focus Copy key")
	r.Press("Control+A")
	r.Press("Control+C")
}

// CopyFromHeading selects from the heading to the text after the field with the mouse, and copies
// the selection.
func (r Reveal) CopyFromHeading() {
	r.t.Helper()
	r.copyUpTo(r.root.GetByText("Waiting for the first request"))
}

// CopyTextBefore copies the text before the field, without any part of the key.
func (r Reveal) CopyTextBefore() {
	r.t.Helper()
	r.copyUpTo(r.root.GetByText("be able to see it again").First())
}

func (r Reveal) copyUpTo(end playwright.Locator) {
	r.t.Helper()
	from, err := r.root.GetByRole("heading", playwright.LocatorGetByRoleOptions{Name: "API key generated"}).BoundingBox()
	r.must(err, "find the heading")
	to, err := end.BoundingBox()
	r.must(err, "find the end of the selection")
	mouse := r.Page.Mouse()
	r.must(mouse.Move(from.X+2, from.Y+from.Height/2), "move the mouse to the heading")
	r.must(mouse.Down(), "press the mouse button")
	r.must(mouse.Move(to.X+to.Width/2, to.Y+to.Height/2, playwright.MouseMoveOptions{Steps: playwright.Int(5)}), "move the mouse")
	r.must(mouse.Up(), "release the mouse button")
	r.Press("Control+C")
}

// CopyPart copies the key without its last character.
func (r Reveal) CopyPart() {
	r.t.Helper()
	r.must(r.field().Focus(), "focus the key's field")
	_, err := r.field().Evaluate(`f => f.setSelectionRange(0, f.value.length - 1)`, nil)
	r.must(err, "select a part of the key")
	r.Press("Control+C")
}

// CopyWithFocusOnButton selects the key, moves the focus to a button and presses Control+C, which
// copies nothing.
func (r Reveal) CopyWithFocusOnButton() {
	r.t.Helper()
	r.must(r.field().Focus(), "focus the key's field")
	r.Press("Control+A")
	r.must(within(r.root, "button", "Copy key").Focus(), "focus Copy key")
	r.Press("Control+C")
}

// Done presses Done. The caller checks the result.
func (r Reveal) Done() {
	r.t.Helper()
	r.click(within(r.root, "button", "Done"), "Done")
}

// ClickOutside clicks outside the dialog.
func (r Reveal) ClickOutside() {
	r.t.Helper()
	r.must(r.Page.Mouse().Click(4, 4), "click outside")
}

// Leave closes the reveal without copying the key. It returns to the page that opened the reveal.
func (r Reveal) Leave() {
	r.t.Helper()
	r.Done()
	if r.JavaScript {
		r.ExpectGate()
		r.CloseWithoutCopying()
	}
	r.hidden(r.field(), "the key")
}

// Abandon closes the reveal without copying the key and waits for the list of keys.
func (r Reveal) Abandon() {
	r.t.Helper()
	r.Leave()
	r.ExpectClosed()
}

// ExpectGate waits for the warning that the key has not been copied. The key must still be visible.
func (r Reveal) ExpectGate() {
	r.t.Helper()
	r.visible(r.root.GetByText("This key has not been copied"), "the text This key has not been copied")
	r.visible(r.closeAnyway(), "button Close without copying")
	r.visible(r.field(), "the key")
}

// ExpectNoGate checks that the warning is not shown.
func (r Reveal) ExpectNoGate() {
	r.t.Helper()
	r.hidden(r.Page.GetByText("This key has not been copied"), "text This key has not been copied")
	r.hidden(r.closeAnyway(), "button Close without copying")
}

// CloseWithoutCopying confirms the warning, which closes the reveal.
func (r Reveal) CloseWithoutCopying() {
	r.t.Helper()
	r.click(r.closeAnyway(), "Close without copying")
}

// ExpectClosed waits until the reveal is closed and the list of keys is visible.
func (r Reveal) ExpectClosed() {
	r.t.Helper()
	r.hidden(r.field(), "the key")
	if r.JavaScript {
		r.hidden(r.root, "dialog API key generated")
	}
	ExpectKeys(r.Tab)
}

func (r Reveal) field() playwright.Locator { return within(r.root, "textbox", "API key") }

func (r Reveal) message(pattern string) playwright.Locator {
	messages := r.root.GetByRole("status").Or(r.root.GetByRole("alert"))
	return messages.Filter(playwright.LocatorFilterOptions{HasText: regexp.MustCompile(pattern)})
}

func (r Reveal) closeAnyway() playwright.Locator {
	return within(r.root, "button", "Close without copying")
}

// ExpectCopied waits until the reveal shows that the key was copied.
func (r Reveal) ExpectCopied() {
	r.t.Helper()
	r.visible(r.message(`(?i)^\s*copied`), "status that the key was copied")
}

// ExpectCopyFailed waits until the reveal explains how to copy the key by hand.
func (r Reveal) ExpectCopyFailed() {
	r.t.Helper()
	r.visible(r.message(`Ctrl\+C`), "explanation of copying by hand")
	r.must(r.expect.Locator(r.message(`(?i)^\s*copied`)).ToHaveCount(0), "expect no status that the key was copied")
}

// ExpectKeySelected checks that the whole key is selected.
func (r Reveal) ExpectKeySelected() {
	r.t.Helper()
	selected, err := r.field().Evaluate(`f => f.value.slice(f.selectionStart, f.selectionEnd)`, nil)
	r.must(err, "read the selection")
	if selected != r.Key() {
		r.t.Errorf("the selection is %q, want the key", selected)
	}
}
