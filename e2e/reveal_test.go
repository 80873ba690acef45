package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
	"portal/models/modelstest"
)

// The tests of the reveal run one after the other, because all profiles of the browser share the
// clipboard.
func TestTheReveal(t *testing.T) {
	t.Parallel()
	clipboard.Lock()
	t.Cleanup(clipboard.Unlock)
	t.Run("warns when it is closed before a copy", closingWarnsIfTheKeyWasNotCopied)
	t.Run("closes after a copy", closingAfterACopyShowsNoWarning)
	t.Run("asks before the page is left", leavingAsksIfTheKeyWasNotCopied)
	t.Run("shows the first request of the copied command", showsTheFirstRequestOfTheCopiedCommand)
}

// leaveReveal has the ways to close the dialog.
var leaveReveal = []func(pages.Reveal){
	pages.Reveal.Done,
	func(r pages.Reveal) { r.Press("Escape") },
	func(r pages.Reveal) { _ = r.Page.Mouse().Click(4, 4) }, // outside
}

func closingWarnsIfTheKeyWasNotCopied(t *testing.T) {
	t.Helper()
	_, v := startSignedIn(t, sharedPortal(t), withClipboard)
	keys := pages.OpenKeys(v.Tab)
	const refuse = `() => { navigator.clipboard.writeText = () => Promise.reject(new DOMException("", "NotAllowedError")); document.execCommand = () => false }`
	const remove = `() => { Object.defineProperty(navigator, "clipboard", {value: undefined}); document.execCommand = () => false }`
	for n, act := range []func(pages.Reveal){
		func(pages.Reveal) {},
		func(r pages.Reveal) { r.Select(39); r.Press("Control+C") },
		// The text before the key.
		func(r pages.Reveal) { r.CopyText("be able to see it again") },
		func(r pages.Reveal) { // the focus is not on the selected key
			r.Select(40)
			r.Dialog.Focus("button", "Copy key")
			r.Press("Control+C")
		},
		func(r pages.Reveal) { v.Evaluate(refuse); r.Copy(); r.ExpectCopyFailed() },
		func(r pages.Reveal) { v.Evaluate(remove); r.Copy(); r.ExpectCopyFailed() },
	} {
		reveal := keys.Generate("precious")
		secret := reveal.Secret()
		act(reveal)
		reveal.Dialog.ExpectNo("button", "Close without copying")
		leaveReveal[n%len(leaveReveal)](reveal)
		reveal.ExpectGate()
		// Escape does not close the warning. Only its button does.
		reveal.Press("Escape")
		reveal.Press("Escape")
		reveal.ExpectGate()
		if reveal.Secret() != secret {
			t.Errorf("%d: the dialog no longer has the key", n)
		}
		if n < 4 && strings.Contains(v.Clipboard(), secret) {
			t.Errorf("%d: the clipboard has the key", n)
		}
		reveal.CloseWithoutCopying()
		reveal.ExpectClosed()
		v.ExpectNowhere(secret)
	}
}

func closingAfterACopyShowsNoWarning(t *testing.T) {
	t.Helper()
	_, v := startSignedIn(t, sharedPortal(t), withClipboard)
	keys := pages.OpenKeys(v.Tab)
	for n, copyKey := range []func(pages.Reveal){
		pages.Reveal.Copy,
		func(r pages.Reveal) { r.Dialog.Click("Copy .env line") },
		func(r pages.Reveal) { r.CopySelection("textbox", "API key") },
		func(r pages.Reveal) { r.CopySelection("button", "Copy key") }, // everything
		func(r pages.Reveal) { r.CopyText("Waiting for the first request") },
	} {
		reveal := keys.Generate("copied")
		secret := reveal.Secret()
		copyKey(reveal)
		reveal.ExpectCopied()
		if got := v.Clipboard(); !strings.Contains(got, secret) || (n > 2) != strings.Contains(got, "API key generated") {
			t.Errorf("%d: the clipboard holds %q", n, got)
		}
		leaveReveal[n%len(leaveReveal)](reveal)
		reveal.ExpectClosed()
		reveal.ExpectFocusInPage()
		v.ExpectNowhere(secret)
	}
}

// Until the key was copied, the browser asks before the page is reloaded or left.
func leavingAsksIfTheKeyWasNotCopied(t *testing.T) {
	t.Helper()
	_, v := startSignedIn(t, sharedPortal(t), withClipboard)
	var asked atomic.Int64
	v.Page.OnDialog(func(dialog playwright.Dialog) {
		asked.Add(1)
		_ = dialog.Dismiss()
	})
	keys := pages.OpenKeys(v.Tab)
	reveal := keys.Generate("precious")
	secret := reveal.Secret()
	for n, leave := range []string{`location.reload()`, `history.back()`, `location.assign("/activity")`} {
		v.Evaluate(`() => { ` + leave + ` }`)
		modelstest.Eventually(t, "the browser asks before "+leave, func() bool { return asked.Load() == int64(n)+1 })
		if reveal.Secret() != secret {
			t.Errorf("%s: the key is lost", leave)
		}
	}
	reveal.Copy()
	reveal.ExpectCopied()
	v.Open("/activity")
	pages.OpenKeys(v.Tab).Add("another")
	v.Reload()
	if asked.Load() != 3 {
		t.Error("the browser asks although no key can be lost")
	}
}

// Over HTTPS browsers cache whole pages for going back, even some with no-store.
func TestGoingBackNeverShowsAKeyAgainOverHTTPS(t *testing.T) {
	t.Parallel()
	p, site := portalBehindTLS(t)
	for name, mode := range map[string]profile{"with JavaScript": withJavaScript, "without JavaScript": withoutJavaScript} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			neverShowsAKeyAgain(t, p.newCustomer(t), visit(t, site, mode, inWholeChromium, trustingAnyCertificate))
		})
	}
}

func neverShowsAKeyAgain(t *testing.T, c customer, v *visitor) {
	t.Helper()
	v.allowStatus(http.StatusConflict)
	gone := func(secret string, moves ...func()) {
		t.Helper()
		for _, move := range append([]func(){func() {}}, moves...) {
			move()
			v.ExpectNowhere(secret)
		}
	}
	keys := c.signIn(v.Tab)
	reveal := keys.Generate("shown once")
	secret := reveal.Secret()
	reveal.Abandon()
	gone(secret, v.Back, v.Forward, v.Reload)

	reveal = pages.OpenKeys(v.Tab).Generate("left open")
	secret = reveal.Secret()
	v.Open("/activity")
	gone(secret, v.Back, v.Forward)

	reveal = pages.OpenKeys(v.Tab).Row("shown once").Rotate().Replace()
	secret = reveal.Secret()
	reveal.Leave()
	pages.ExpectRotation(v.Tab)
	gone(secret, v.Back, v.Forward, v.Back, v.Reload)

	reveal = pages.OpenPeople(v.Tab).Invite("colleague@example.com", "Member")
	secret = reveal.Secret()
	reveal.Leave()
	pages.OpenAgents(v.Tab)
	gone(secret, v.Back, v.Back)
}

// The copied curl command runs in a shell that has the copied .env line. The dialog polls, and
// shows the first request within seconds.
func showsTheFirstRequestOfTheCopiedCommand(t *testing.T) {
	t.Helper()
	c, v := startSignedIn(t, modelstest.Value(portalOnPostgres())(t), withClipboard)
	keys := pages.OpenKeys(v.Tab)
	for _, want := range []string{`"agents":[]`, `"access_token":"`} {
		reveal := keys.Generate("production")
		secret := reveal.Secret()
		reveal.Dialog.ExpectStatus(`Waiting for the first request`)
		reveal.Dialog.Click("Copy .env line")
		reveal.ExpectCopied()
		line := v.Clipboard()
		reveal.Dialog.Click("Copy curl")
		v.ExpectStatus(`Copied the curl command`)
		shell := exec.Command("sh", "-c", line+"\n"+v.Clipboard())
		shell.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
		if output, err := shell.CombinedOutput(); err != nil || !strings.Contains(string(output), want) {
			t.Fatalf("want %s, got %v\n%s", want, err, output)
		}
		reveal.Dialog.ExpectStatus(`First request received`)
		if n := v.Occurrences(secret); n != 1 || reveal.Secret() != secret {
			t.Errorf("the page contains the key %d times, want once", n)
		}
		reveal.Done()
		reveal.ExpectClosed()
		c.newAgent(t, "Front desk") // the next command gets a token
	}
}
