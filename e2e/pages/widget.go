package pages

import "github.com/playwright-community/playwright-go"

// Widget is a customer's page on which a visitor talks with a voice agent.
type Widget struct{ *Tab }

// OpenWidget opens the page.
func OpenWidget(b *Tab) Widget {
	b.t.Helper()
	b.Open("/")
	b.ExpectHeading("Talk to us")
	return Widget{b}
}

// Talk presses the button that starts and ends a call.
func (w Widget) Talk() {
	w.t.Helper()
	w.click(w.talk(), "Talk")
}

// ExpectCalling checks that the button is pressed and that it has the focus.
func (w Widget) ExpectCalling() { w.t.Helper(); w.expectPressed("true") }

// ExpectIdle checks that the button is not pressed and that it has the focus.
func (w Widget) ExpectIdle() { w.t.Helper(); w.expectPressed("false") }

// AwaitEnd waits up to a minute until the call has ended.
func (w Widget) AwaitEnd() {
	w.t.Helper()
	_, err := w.Page.WaitForFunction(`() => document.querySelector("[aria-pressed=false]")`, nil,
		playwright.PageWaitForFunctionOptions{Timeout: playwright.Float(60_000)})
	w.must(err, "expect the call to end")
}

func (w Widget) expectPressed(pressed string) {
	w.t.Helper()
	w.must(w.expect.Locator(w.talk()).ToHaveAttribute("aria-pressed", pressed), "expect aria-pressed=%s", pressed)
	w.must(w.expect.Locator(w.talk()).ToBeFocused(), "expect the focus on Talk")
}

// ExpectLevel waits until the meter shows sound.
func (w Widget) ExpectLevel() {
	w.t.Helper()
	_, err := w.Page.WaitForFunction(`() => document.querySelector("meter").value > 0`, nil)
	w.must(err, "expect a microphone level")
}

// ExpectSilence waits until the meter shows nothing.
func (w Widget) ExpectSilence() {
	w.t.Helper()
	w.must(w.expect.Locator(w.Page.GetByLabel("Microphone level")).ToHaveJSProperty("value", 0), "expect no microphone level")
}

// ExpectVoice waits until the page plays the agent's voice.
func (w Widget) ExpectVoice() {
	w.t.Helper()
	_, err := w.Page.WaitForFunction(`() => [...document.querySelectorAll("audio")].some((audio) => !audio.paused && audio.currentTime > 0)`, nil)
	w.must(err, "expect the agent's voice")
}

// ExpectTokens waits until window.tokens, which the test records, has this many different tokens.
func (w Widget) ExpectTokens(count int) {
	w.t.Helper()
	_, err := w.Page.WaitForFunction(`(count) => new Set(window.tokens).size >= count`, count)
	w.must(err, "expect %d tokens", count)
}

func (w Widget) talk() playwright.Locator { return w.role("button", "Talk") }
