package e2e

import (
	"net/http"
	"strings"
	"testing"

	"portal/e2e/pages"
)

// Every way of leaving the dialog first reminds of a key that has not been copied.
func TestAKeyNotCopiedIsNotLostByAccident(t *testing.T) {
	t.Parallel()
	_, v, keys := arrive(t, sharedPortal(t))
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
		// Impatience is no answer: only the button is.
		reveal.Press("Escape")
		reveal.Press("Escape")
		reveal.ExpectGate()
		if reveal.Key() != secret {
			t.Fatalf("after %s the dialog no longer holds the key", way)
		}
		reveal.CloseWithoutCopying()
		reveal.ExpectClosed()
		v.ExpectNowhere(secret)
	}
}

func TestACopiedKeyIsLetGoWithoutAReminder(t *testing.T) {
	t.Parallel()
	_, v, keys := arrive(t, sharedPortal(t), withClipboard)
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

func TestACopyOfMoreThanTheKeyCounts(t *testing.T) {
	t.Parallel()
	_, v, keys := arrive(t, sharedPortal(t), withClipboard)
	holdClipboard(t)
	for name, copyAll := range map[string]func(pages.Reveal){
		"everything":                    pages.Reveal.CopyEverything,
		"from the heading to behind it": pages.Reveal.CopyAcross,
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

func TestACopyWithoutTheWholeKeyDoesNotCount(t *testing.T) {
	t.Parallel()
	_, v, keys := arrive(t, sharedPortal(t), withClipboard)
	holdClipboard(t)
	for name, copyLess := range map[string]func(pages.Reveal){
		"a part of the key":        pages.Reveal.CopyPart,
		"the text before it":       pages.Reveal.CopyTextBefore,
		"with the focus elsewhere": pages.Reveal.CopyFromElsewhere,
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

// Browsers refuse the clipboard for many reasons, and a customer must not be told that a key was copied which was not.
func TestACopyThatFailsDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, breakage := range map[string]string{
		"refused": `Object.defineProperty(navigator, "clipboard", {value: {writeText: () => Promise.reject(new DOMException("refused", "NotAllowedError"))}}); document.execCommand = () => false`,
		"missing": `Object.defineProperty(navigator, "clipboard", {value: undefined}); document.execCommand = () => false`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := sharedPortal(t).newCustomer(t)
			v := visit(t, c.at.URL)
			v.beforeScripts(t, breakage)
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

func TestNoWayOfGoingBackShowsAKeyAgain(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		p := sharedPortal(t)
		v := visit(t, p.URL, mode)
		v.allowStatus(http.StatusConflict)
		expectNeverShownAgain(v, p.newCustomer(t).signIn(v.Tab))
	})
}

// Over HTTPS browsers keep whole pages for going back, even some that ask them not to.
func TestNoWayOfGoingBackShowsAKeyAgainOverHTTPS(t *testing.T) {
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

	// Leaving without closing, and coming back, is going back too.
	reveal = keys.Generate("left open")
	secret = reveal.Key()
	v.Open("/activity")
	v.Back()
	v.ExpectNowhere(secret)
	v.Forward()
	v.ExpectNowhere(secret)
}
