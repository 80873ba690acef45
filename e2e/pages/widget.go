package pages

import (
	"fmt"
	"regexp"
	"time"

	"github.com/playwright-community/playwright-go"
)

// Widget is a customer's page on which a visitor talks with a voice agent.
type Widget struct{ *Tab }

// widgetRecorder records the microphones and connections that the page opens, and its statuses. The
// meter of the microphone moves five times a second, because each frame of a call takes CPU.
const widgetRecorder = `
	window.requestAnimationFrame = (draw) => setTimeout(draw, 200)
	window.cancelAnimationFrame = clearTimeout
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
	b.must(b.Page.AddInitScript(playwright.Script{Content: playwright.String(widgetRecorder)}), "prepare the page")
	b.Open("/")
	b.ExpectHeading("Talk to us")
	return Widget{b}
}

// Talk presses the button that starts and ends a call.
func (w Widget) Talk() { w.Click("Talk") }

// ExpectCalling checks that the button is pressed and that it has the focus.
func (w Widget) ExpectCalling() { w.ExpectFocus("button", "End call") }

// ExpectIdle checks that the button is not pressed and has the focus, and waits until the page has
// released the microphone and its connections.
func (w Widget) ExpectIdle() {
	w.ExpectFocus("button", "Talk")
	w.await("the microphone and the connections to be released", `() => opening === 0
		&& microphones.every((track) => track.readyState === "ended")
		&& connections.every((connection) => ["new", "closed"].includes(connection.connectionState))
		&& document.querySelector("meter").value === 0 && !document.querySelector("audio")`)
}

// AwaitEnd waits until the call has ended.
func (w Widget) AwaitEnd() {
	w.await("the call to end", `() => document.querySelector("button").textContent === "Talk"`)
}

// SkipToAlertSaying moves the page's clock forward until an alert matches pattern. Its steps are
// short, so that messages that keep a connection alive are not late.
func (w Widget) SkipToAlertSaying(pattern string) {
	alert := w.message("alert", pattern)
	for range 100 {
		w.must(w.Page.Clock().FastForward(2000), "move the clock")
		time.Sleep(50 * time.Millisecond) // for the network
		if count, err := alert.Count(); err == nil && count > 0 {
			return
		}
	}
	w.t.Fatalf("%s: no alert saying %s after three minutes", callerInTest(), pattern)
}

// ExpectLevel waits until the microphone is on and the meter shows sound.
func (w Widget) ExpectLevel() {
	w.await("a microphone level",
		`() => microphones.some((track) => track.readyState === "live") && document.querySelector("meter").value > 0`)
}

// ExpectVoice waits until the page plays the agent's voice and has received a second of it.
func (w Widget) ExpectVoice() {
	w.await("the agent's voice", `() => [...document.querySelectorAll("audio")].some((audio) => !audio.paused && audio.currentTime > 0)`)
	first := w.packets()
	w.eventually("a second of the agent's voice", func() bool {
		now := w.packets()
		first = min(first, now) // packets of a closed connection do not count
		return now >= first+50
	})
}

// packets returns how many packets of audio the page's connections have received.
func (w Widget) packets() int {
	return w.Evaluate(`async () => (await Promise.all(connections.map((connection) => connection.getStats())))
		.flatMap((report) => [...report.values()])
		.reduce((sum, { type, packetsReceived }) => sum + (type === "inbound-rtp" ? packetsReceived : 0), 0)`).(int)
}

// ExpectSaid checks that the statuses so far, separated by "|", match pattern.
func (w Widget) ExpectSaid(pattern string) {
	said := w.Evaluate(`() => said.filter((text, i) => text !== said[i - 1]).join("|")`)
	if !regexp.MustCompile(pattern).MatchString(said.(string)) {
		w.t.Errorf("%s: the page said %q, want %q", callerInTest(), said, pattern)
	}
}

// ExpectTokens waits until window.tokens, which the test records, has this many different tokens.
func (w Widget) ExpectTokens(count int) {
	w.await("tokens", fmt.Sprintf(`() => new Set(window.tokens).size >= %d`, count))
}

// await waits up to a minute until a JavaScript function returns true. It polls, because by default
// the driver calls the function in each frame.
func (w Widget) await(what, condition string) {
	_, err := w.Page.WaitForFunction(condition, nil, playwright.PageWaitForFunctionOptions{
		Polling: 100, Timeout: playwright.Float(60_000),
	})
	w.must(err, "expect %s", what)
}
