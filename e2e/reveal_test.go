package e2e

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
)

// Every way to close the dialog first warns that the key has not been copied.
func TestClosingTheRevealWarnsIfTheKeyWasNotCopied(t *testing.T) {
	t.Parallel()
	_, v, keys := startSignedIn(t, sharedPortal(t))
	reveal := keys.Generate("precious")
	secret := reveal.Key()
	reveal.ExpectNoGate()

	ways := map[string]func(){
		"Done":          reveal.Done,
		"Escape":        func() { reveal.Press("Escape") },
		"click outside": reveal.ClickOutside,
	}
	first := true
	for way, leave := range ways {
		if !first {
			reveal = keys.Generate("precious too")
			secret = reveal.Key()
		}
		first = false
		leave()
		reveal.ExpectGate()
		// Escape does not close the warning. Only its button does.
		reveal.Press("Escape")
		reveal.Press("Escape")
		reveal.ExpectGate()
		if reveal.Key() != secret {
			t.Fatalf("after %s the dialog no longer has the key", way)
		}
		reveal.CloseWithoutCopying()
		reveal.ExpectClosed()
		v.ExpectNowhere(secret)
	}
}

func TestClosingTheRevealAfterACopyShowsNoWarning(t *testing.T) {
	t.Parallel()
	_, v, keys := startSignedIn(t, sharedPortal(t), withClipboard)
	holdClipboard(t)
	for name, way := range map[string]struct {
		copyKey func(pages.Reveal)
		prefix  string
	}{
		"by the button": {pages.Reveal.Copy, ""},
		"by hand":       {pages.Reveal.CopyByHand, ""},
		"as a line":     {pages.Reveal.CopyLine, "NAS_API_KEY="},
	} {
		for _, leave := range []func(pages.Reveal){
			pages.Reveal.Done,
			func(r pages.Reveal) { r.Press("Escape") },
			pages.Reveal.ClickOutside,
		} {
			reveal := keys.Generate(name)
			secret := reveal.Key()
			way.copyKey(reveal)
			reveal.ExpectCopied()
			if got := v.Clipboard(); got != way.prefix+secret {
				t.Errorf("copied %s, the clipboard holds %q", name, got)
			}
			leave(reveal)
			reveal.ExpectClosed()
			reveal.ExpectNoGate()
			reveal.ExpectFocusInPage()
			v.ExpectNowhere(secret)
		}
	}
}

func TestCopyingMoreThanTheKeyCounts(t *testing.T) {
	t.Parallel()
	_, v, keys := startSignedIn(t, sharedPortal(t), withClipboard)
	holdClipboard(t)
	for name, copyAll := range map[string]func(pages.Reveal){
		"everything": pages.Reveal.CopyEverything,
		"from the heading to the text after the key": pages.Reveal.CopyFromHeading,
	} {
		for _, leave := range []func(pages.Reveal){pages.Reveal.Done, func(r pages.Reveal) { r.Press("Escape") }} {
			reveal := keys.Generate(name)
			secret := reveal.Key()
			copyAll(reveal)
			reveal.ExpectCopied()
			if got := v.Clipboard(); !strings.Contains(got, secret) || !strings.Contains(got, "API key generated") {
				t.Errorf("copied %s, the clipboard holds %q", name, got)
			}
			leave(reveal)
			reveal.ExpectClosed()
			reveal.ExpectNoGate()
			v.ExpectNowhere(secret)
		}
	}
}

func TestCopyingLessThanTheKeyDoesNotCount(t *testing.T) {
	t.Parallel()
	_, v, keys := startSignedIn(t, sharedPortal(t), withClipboard)
	holdClipboard(t)
	for name, copyLess := range map[string]func(pages.Reveal){
		"a part of the key":        pages.Reveal.CopyPart,
		"the text before it":       pages.Reveal.CopyTextBefore,
		"with the focus elsewhere": pages.Reveal.CopyWithFocusOnButton,
	} {
		reveal := keys.Generate(name)
		copyLess(reveal)
		if got := v.Clipboard(); strings.Contains(got, reveal.Key()) {
			t.Errorf("copied %s, the clipboard holds the key: %q", name, got)
		}
		reveal.Done()
		reveal.ExpectGate()
		reveal.CloseWithoutCopying()
		reveal.ExpectClosed()
	}
}

// Browsers refuse access to the clipboard for many reasons. The portal must not report such a copy
// as a success.
func TestAFailedCopyDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, breakage := range map[string]string{
		"refused": `Object.defineProperty(navigator, "clipboard", {value: {writeText: () => Promise.reject(new DOMException("refused", "NotAllowedError"))}}); document.execCommand = () => false`,
		"missing": `Object.defineProperty(navigator, "clipboard", {value: undefined}); document.execCommand = () => false`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := sharedPortal(t).newCustomer(t)
			v := visit(t, c.at.URL)
			v.addInitScript(t, breakage)
			keys := c.signIn(v.Tab)

			reveal := keys.Generate("not copied")
			reveal.Copy()
			reveal.ExpectCopyFailed()
			reveal.ExpectKeySelected()
			reveal.Done()
			reveal.ExpectGate()
			reveal.CloseWithoutCopying()
			reveal.ExpectClosed()
		})
	}
}

// Until the key was copied, the browser asks before the page is reloaded or left.
func TestLeavingThePageAsksIfTheKeyWasNotCopied(t *testing.T) {
	t.Parallel()
	_, v, keys := startSignedIn(t, sharedPortal(t), withClipboard)
	holdClipboard(t)
	var asked atomic.Int64
	v.Page.OnDialog(func(dialog playwright.Dialog) {
		asked.Add(1)
		_ = dialog.Dismiss()
	})
	reveal := keys.Generate("precious")
	secret := reveal.Key()
	for name, leave := range map[string]string{
		"reload":    `() => location.reload()`,
		"back":      `() => history.back()`,
		"open page": `() => location.assign("/activity")`,
	} {
		before := asked.Load()
		if _, err := v.Page.Evaluate(leave); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); asked.Load() == before && time.Now().Before(deadline); {
			time.Sleep(20 * time.Millisecond)
		}
		if asked.Load() == before {
			t.Fatalf("%s: the browser does not ask", name)
		}
		if reveal.Key() != secret {
			t.Errorf("%s: the key is lost", name)
		}
	}
	reveal.Copy()
	reveal.ExpectCopied()
	before := asked.Load()
	v.Open("/activity")
	pages.OpenKeys(v.Tab).Add("another")
	v.Reload()
	if asked.Load() != before {
		t.Error("the browser asks although no key can be lost")
	}
}

func TestGoingBackNeverShowsAKeyAgain(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		p := sharedPortal(t)
		v := visit(t, p.URL, mode)
		v.allowStatus(http.StatusConflict)
		expectNeverShownAgain(v, p.newCustomer(t).signIn(v.Tab))
	})
}

// Over HTTPS browsers cache whole pages for going back, even some with no-store.
func TestGoingBackNeverShowsAKeyAgainOverHTTPS(t *testing.T) {
	t.Parallel()
	p, site := portalBehindTLS(t)
	inBothModes(t, func(t *testing.T, mode profile) {
		v := visit(t, site, mode, trustingAnyCertificate)
		v.allowStatus(http.StatusConflict)
		expectNeverShownAgain(v, p.newCustomer(t).signIn(v.Tab))
	})
}

func expectNeverShownAgain(v *visitor, keys pages.Keys) {
	reveal := keys.Generate("shown once")
	secret := reveal.Key()
	reveal.Abandon()
	v.ExpectNowhere(secret)
	v.Back()
	v.ExpectNowhere(secret)
	v.Forward()
	v.ExpectNowhere(secret)
	v.Reload()
	v.ExpectNowhere(secret)
	keys = pages.OpenKeys(v.Tab)
	v.ExpectNowhere(secret)

	// Leaving the page with the dialog open and coming back must not show the key either.
	reveal = keys.Generate("left open")
	secret = reveal.Key()
	v.Open("/activity")
	v.Back()
	v.ExpectNowhere(secret)
	v.Forward()
	v.ExpectNowhere(secret)
}
