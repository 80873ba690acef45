package pages

import (
	"regexp"
	"time"

	"github.com/playwright-community/playwright-go"
)

// Widget is a customer's page on which a visitor talks with a voice agent.
type Widget struct{ *Tab }

// widgetRecorder records the microphones and connections that the page opens, and its statuses.
const widgetRecorder = `
	window.said = []
	new MutationObserver((changes) => changes.forEach(({ target, addedNodes }) => {
		if (target.role === "status") said.push(...[...addedNodes].map((text) => text.data))
	})).observe(document, { subtree: true, childList: true })
	window.opening = 0
	window.microphones = []
	window.connections = []
	window.RTCPeerConnection = class extends RTCPeerConnection {
		constructor(...options) {
			super(...options)
			connections.push(this)
		}
	}
	if (navigator.mediaDevices) {
		const open = navigator.mediaDevices.getUserMedia
		navigator.mediaDevices.getUserMedia = async function (wanted) {
			opening += 1
			try {
				const stream = await open.call(this, wanted)
				microphones.push(...stream.getTracks())
				return stream
			} finally {
				opening -= 1
			}
		}
	}`

// OpenWidget opens the page.
func OpenWidget(b *Tab) Widget {
	b.t.Helper()
	b.must(b.Page.AddInitScript(playwright.Script{Content: playwright.String(widgetRecorder)}), "prepare the page")
	b.Open("/")
	b.ExpectHeading("Talk to us")
	return Widget{b}
}

// Talk presses the button that starts and ends a call.
func (w Widget) Talk() {
	w.t.Helper()
	w.click(w.talk(), "Talk")
}

// TalkTwice presses the button twice, fast.
func (w Widget) TalkTwice() {
	w.t.Helper()
	w.must(w.talk().Dblclick(), "press Talk twice")
}

// ExpectCalling checks that the button is pressed and that it has the focus.
func (w Widget) ExpectCalling() { w.t.Helper(); w.expectPressed("true") }

// ExpectIdle checks that the button is not pressed and that it has the focus. It waits until the
// page has released the microphone and its connections.
func (w Widget) ExpectIdle() {
	w.t.Helper()
	w.expectPressed("false")
	w.await("the microphone and the connections to be released", `() => opening === 0
		&& microphones.every((track) => track.readyState === "ended")
		&& connections.every((connection) => ["new", "closed"].includes(connection.connectionState))
		&& document.querySelector("meter").value === 0 && !document.querySelector("audio")`)
}

// AwaitEnd waits up to a minute until the call has ended.
func (w Widget) AwaitEnd() {
	w.t.Helper()
	_, err := w.Page.WaitForFunction(`() => document.querySelector("[aria-pressed=false]")`, nil,
		playwright.PageWaitForFunctionOptions{Timeout: playwright.Float(60_000)})
	w.must(err, "expect the call to end")
}

// SkipToAlertSaying moves the page's clock forward until an alert matches pattern. Its steps are
// short, so that messages that keep a connection alive are not late.
func (w Widget) SkipToAlertSaying(pattern string) {
	w.t.Helper()
	alert := w.Page.GetByRole("alert").Filter(playwright.LocatorFilterOptions{HasText: regexp.MustCompile(pattern)})
	for range 100 {
		w.must(w.Page.Clock().FastForward(2000), "move the clock")
		time.Sleep(50 * time.Millisecond) // for the network
		if count, err := alert.Count(); err == nil && count > 0 {
			return
		}
	}
	w.t.Fatalf("no alert saying %s after three minutes", pattern)
}

// ExpectLevel waits until the microphone is on and the meter shows sound.
func (w Widget) ExpectLevel() {
	w.t.Helper()
	w.await("a microphone level",
		`() => microphones.some((track) => track.readyState === "live") && document.querySelector("meter").value > 0`)
}

// ExpectVoice waits until the page plays the agent's voice and has received a second of it.
func (w Widget) ExpectVoice() {
	w.t.Helper()
	w.await("the agent's voice", `() => [...document.querySelectorAll("audio")].some((audio) => !audio.paused && audio.currentTime > 0)`)
	first := w.packets()
	for deadline := time.Now().Add(w.patience()); ; time.Sleep(50 * time.Millisecond) {
		now := w.packets()
		if now >= first+50 {
			return
		}
		first = min(first, now) // packets of a closed connection do not count
		if time.Now().After(deadline) {
			w.t.Fatal("the agent's voice has stopped")
		}
	}
}

// packets returns how many packets of audio the page's connections have received.
func (w Widget) packets() int {
	w.t.Helper()
	count, err := w.Page.Evaluate(`async () => (await Promise.all(connections.map((connection) => connection.getStats())))
		.flatMap((report) => [...report.values()])
		.reduce((sum, { type, packetsReceived }) => sum + (type === "inbound-rtp" ? packetsReceived : 0), 0)`)
	w.must(err, "count packets")
	return count.(int)
}

// ExpectSaid checks that the statuses so far, separated by "|", match pattern.
func (w Widget) ExpectSaid(pattern string) {
	w.t.Helper()
	said, err := w.Page.Evaluate(`() => said.filter((text, i) => text !== said[i - 1]).join("|")`)
	w.must(err, "read the statuses")
	if !regexp.MustCompile(pattern).MatchString(said.(string)) {
		w.t.Errorf("the page said %q, want %q", said, pattern)
	}
}

// ExpectTokens waits until window.tokens, which the test records, has this many different tokens.
func (w Widget) ExpectTokens(count int) {
	w.t.Helper()
	_, err := w.Page.WaitForFunction(`(count) => new Set(window.tokens).size >= count`, count)
	w.must(err, "expect %d tokens", count)
}

func (w Widget) expectPressed(pressed string) {
	w.t.Helper()
	w.must(w.expect.Locator(w.talk()).ToHaveAttribute("aria-pressed", pressed), "expect aria-pressed=%s", pressed)
	w.must(w.expect.Locator(w.talk()).ToBeFocused(), "expect the focus on Talk")
}

// await waits until a JavaScript function returns true.
func (w Widget) await(what, condition string) {
	w.t.Helper()
	_, err := w.Page.WaitForFunction(condition, nil)
	w.must(err, "expect %s", what)
}

func (w Widget) talk() playwright.Locator { return w.role("button", "Talk") }
