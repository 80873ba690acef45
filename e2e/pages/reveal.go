package pages

import (
	"fmt"

	"github.com/playwright-community/playwright-go"
)

// Reveal shows a secret once, a new key or the link of an invitation: a dialog with JavaScript, a
// page without.
type Reveal struct {
	*Tab
	Dialog Area
	field  string
}

// ExpectReveal waits for the reveal of a new key.
func ExpectReveal(b *Tab) Reveal { return expectReveal(b, "API key generated", "API key") }

func expectReveal(b *Tab, title, field string) Reveal {
	r := Reveal{Tab: b, Dialog: b.In("dialog", title), field: field}
	if !b.JavaScript {
		b.ExpectHeading(title)
		r.Dialog = b.In("main", "")
	}
	r.Dialog.Expect("textbox", field)
	return r
}

// Secret returns the whole key or link, and checks that its field is read-only.
func (r Reveal) Secret() string {
	r.must(r.expect.Locator(r.Dialog.find("textbox", r.field)).Not().ToBeEditable(), "expect the field to be read-only")
	return r.Dialog.Value(r.field)
}

// Copy copies the key with the button.
func (r Reveal) Copy() { r.Dialog.Click("Copy key") }

// CopySelection focuses an element, selects everything in it or around it, and presses Control+C.
func (r Reveal) CopySelection(focused playwright.AriaRole, name string) {
	r.Dialog.Focus(focused, name)
	r.Press("Control+A")
	r.Press("Control+C")
}

// CopyText selects from the heading to the given text with the mouse, and copies the selection.
func (r Reveal) CopyText(upTo string) {
	from, err := r.Dialog.find("heading", "API key generated").BoundingBox()
	r.must(err, "find the heading")
	to, err := r.Dialog.root.GetByText(upTo).First().BoundingBox()
	r.must(err, "find %s", upTo)
	mouse := r.Page.Mouse()
	r.must(mouse.Move(from.X+2, from.Y+from.Height/2), "move the mouse to the heading")
	r.must(mouse.Down(), "press the mouse button")
	r.must(mouse.Move(to.X+to.Width/2, to.Y+to.Height/2, playwright.MouseMoveOptions{Steps: playwright.Int(5)}), "move the mouse")
	r.must(mouse.Up(), "release the mouse button")
	r.Press("Control+C")
}

// Select selects a part of the key, from its start.
func (r Reveal) Select(length int) {
	r.Dialog.Focus("textbox", "API key")
	r.Evaluate(fmt.Sprintf(`() => document.activeElement.setSelectionRange(0, %d)`, length))
}

// ShowExample opens the example request.
func (r Reveal) ShowExample() {
	r.must(r.Dialog.root.GetByText("Get a widget token").Click(), "open the example")
}

// Done presses Done.
func (r Reveal) Done() { r.Dialog.Click("Done") }

// Leave closes the reveal without copying the secret, and returns to the page that opened the
// reveal.
func (r Reveal) Leave() {
	r.Done()
	if r.JavaScript {
		r.CloseWithoutCopying()
	}
	r.ExpectNo("textbox", r.field)
	r.settled()
}

// Abandon closes the reveal without copying the key and waits for the list of keys.
func (r Reveal) Abandon() {
	r.Leave()
	ExpectKeys(r.Tab)
}

// ExpectGate waits for the warning that the secret has not been copied, and checks that it is still
// visible.
func (r Reveal) ExpectGate() {
	r.Dialog.ExpectText("has not been copied")
	r.Dialog.Expect("button", "Close without copying")
	r.Dialog.Expect("textbox", r.field)
}

// CloseWithoutCopying waits for the warning and confirms it, which closes the reveal.
func (r Reveal) CloseWithoutCopying() {
	r.ExpectGate()
	r.Dialog.Click("Close without copying")
}

// ExpectClosed waits until the reveal is closed without a warning, and the list of keys is visible.
func (r Reveal) ExpectClosed() {
	r.ExpectNo("textbox", "API key")
	r.ExpectNo("dialog", "API key generated")
	r.ExpectNo("button", "Close without copying")
	ExpectKeys(r.Tab)
}

// ExpectCopied waits until the reveal says that the key was copied.
func (r Reveal) ExpectCopied() { r.Dialog.ExpectStatus(`(?i)^\s*copied`) }

// ExpectCopyFailed waits until the reveal explains how to copy the key by hand, with the whole key
// selected.
func (r Reveal) ExpectCopyFailed() {
	r.Dialog.ExpectStatus(`Ctrl\+C`)
	r.must(r.expect.Locator(r.Dialog.message("status", `(?i)^\s*copied`)).ToHaveCount(0), "expect no status that the key was copied")
	selected := r.Dialog.In("textbox", "API key").measure(`f => f.value.slice(f.selectionStart, f.selectionEnd)`)
	if selected != r.Secret() {
		r.t.Errorf("%s: the selection is %q, want the key", callerInTest(), selected)
	}
}
