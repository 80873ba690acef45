package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
	"portal/models/modelstest"
)

// places returns where the controls of the new key are, but for Generate.
const places = `() => Object.fromEntries([...document.querySelectorAll("#api-key-form :is(summary, legend, input, select, textarea, label)")]
	.filter(e => e.checkVisibility() && e.getClientRects().length)
	.map(e => [e.id || e.value || e.textContent.trim(), [e.getBoundingClientRect().x, e.getBoundingClientRect().y + scrollY, e.getBoundingClientRect().width].map(Math.round).join(" ")]))`

// Nothing that a user sees in the form moves when a part of it opens, but for what is below that
// part.
func TestNothingBesideAPressedControlMoves(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t), withMotion)
	c.newAgent(t, "Front desk")
	for _, width := range []int{1440, 360} {
		modelstest.Must(t, v.Page.SetViewportSize(width, 900))
		keys := pages.OpenKeys(v.Tab)
		press := func(what string, below []string, act func()) {
			t.Helper()
			before := v.Evaluate(places).(map[string]any)
			act()
			after := v.Evaluate(places).(map[string]any)
			for name, place := range before {
				if after[name] != place && !containsAny(name, below) {
					t.Errorf("%d px wide: %s moves %s from %v to %v", width, what, name, place, after[name])
				}
			}
		}
		press("another kind", nil, func() { keys.OpenKinds() })
		kinds := []string{"agents", "reports", "secret", "workload", "Access", "Credential", "Agents and tokens", "Reports only", "Secret key", "Workload identity"}
		press("the restrictions", kinds, func() { keys.OpenRestrictions() })
		press("reports only", nil, func() { v.check(t, "Reports only") })
		keys.ExpectNo("textbox", "Calls at a time")
		keys.ExpectNo("radio", "Only these")
		press("agents and tokens", nil, func() { v.check(t, "Agents and tokens") })
		keys.Expect("radio", "Only these")
		press("a key without a secret", nil, func() { v.check(t, "Workload identity (no secret)") })
		press("its provider", nil, func() {
			keys.Choose("Provider", "GitHub Actions")
			keys.Expect("textbox", "Repository")
		})
		press("the advanced fields", nil, func() {
			keys.ExpectNo("textbox", "Issuer")
			keys.Unfold("Advanced")
			keys.Expect("textbox", "Issuer")
		})
		keys.ExpectText(`^No secret: workload identity\.`)
	}
}

func containsAny(name string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

func (v *visitor) check(t *testing.T, radio string) {
	t.Helper()
	modelstest.Must(t, v.Page.GetByRole("radio", playwright.PageGetByRoleOptions{Name: radio, Exact: playwright.Bool(true)}).Check())
}

// The access of a key can never be changed, so no choice is left for the next key.
func TestTheFormIsAsAtFirstAfterAGeneration(t *testing.T) {
	inBothModes(t, func(t *testing.T, p *process, mode profile) {
		c, v := startSignedIn(t, p, mode)
		c.newAgent(t, "Front desk")
		keys := pages.OpenKeys(v.Tab)
		for _, use := range []func(){
			func() { keys.OpenKinds(); v.check(t, "Reports only") },
			func() { keys.OpenRestrictions(); v.check(t, "Only these"); v.check(t, "All agents") },
			func() { keys.OpenRestrictions().Fill("Allowed networks", "192.0.2.0/24") },
		} {
			use()
			keys.Generate("first").Abandon()
			keys.ExpectNo("radio", "Agents and tokens")
			keys.ExpectNo("textbox", "Allowed networks")
			keys.ExpectText(`^Secret key\.`)
			keys.OpenKinds().ExpectChecked("Agents and tokens")
			keys.OpenKinds()
			restrictions := keys.OpenRestrictions()
			if networks := restrictions.Value("Allowed networks"); networks != "" {
				t.Errorf("the networks are still %q", networks)
			}
			keys.OpenRestrictions()
		}
	})
}

// What was entered before "Reports only" hid it refuses nothing.
func TestHiddenRestrictionsRefuseNothing(t *testing.T) {
	inBothModes(t, func(t *testing.T, p *process, mode profile) {
		c, v := startSignedIn(t, p, mode)
		c.newAgent(t, "Front desk")
		keys := pages.OpenKeys(v.Tab)
		keys.OpenRestrictions()
		v.check(t, "Only these")
		keys.OpenKinds()
		v.check(t, "Reports only")
		keys.Generate("reports").Abandon()
		keys.Row("reports").ExpectText(`^Reports only$`)
	})
}

func TestAKeyGeneratedInAFilteredListIsFound(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	c.newKey(t, "idle")
	v.Open("/api-keys?show=unused")
	keys := pages.ExpectKeys(v.Tab)
	keys.Generate("new").Leave()
	keys.ExpectStatus(`Press “Show all keys” to see it`)
	keys.Follow("Show all keys")
	keys.Row("new").ExpectShown()
}

// The page stays where it is, and the next row has the focus.
func TestARevocationDoesNotScroll(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t), withMotion)
	c.newKeys(t, 30, "key %d")
	keys := pages.OpenKeys(v.Tab)
	v.Evaluate(`() => scrollTo(0, 600)`)
	for _, label := range []string{"key 14", "key 13"} {
		before := v.Evaluate(`() => scrollY`)
		keys.Row(label).Revoke().Confirm()
		keys.ExpectStatus(`was revoked`)
		keys.Row(label).ExpectGone()
		if after := v.Evaluate(`() => scrollY`); after != before {
			t.Errorf("the page scrolled from %v to %v", before, after)
		}
	}
	keys.Row("key 12").ExpectFocus("button", "Revoke")
	for range 2 {
		keys.Row("key 1").Revoke().Confirm()
		keys.Row("key 1").ExpectGone()
		c.newKey(t, "key 1")
		keys = pages.OpenKeys(v.Tab)
	}
}

// Another tab revokes the key whose row has the focus.
func TestARowThatIsRevokedElsewhereIsAnnounced(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	v.allow(`htmx:error: timeout`)
	modelstest.Must(t, v.Page.Clock().Install())
	c.newKey(t, "next")
	c.newKey(t, "gone")
	path := c.Get("/api-keys").Find(`(?s)>gone<.*?action="(/api-keys/[0-9a-f-]+)/name"`)
	keys := pages.OpenKeys(v.Tab)
	keys.Row("gone").Focus("button", "Revoke")
	c.Post(path+"/revocation", nil).Is(http.StatusSeeOther)
	v.ExpectAnnounced(`API key “gone” \(nas_.*\) was revoked elsewhere`, func() {
		modelstest.Must(t, v.Page.Clock().FastForward("00:16"))
	})
	keys.Row("next").ExpectFocus("button", "Revoke")
}

func TestAllKeysAreSelected(t *testing.T) {
	inBothModes(t, func(t *testing.T, p *process, mode profile) {
		c, v := startSignedIn(t, p, mode)
		c.newKeys(t, 3, "key %d")
		keys := pages.OpenKeys(v.Tab)
		keys.ExpectNo("button", "Revoke selected")
		modelstest.Must(t, v.Page.GetByRole("checkbox", playwright.PageGetByRoleOptions{Name: "Select key 2"}).Check())
		if v.JavaScript {
			keys.ExpectText(`^1 selected$`)
		}
		keys.Click("Select all 3")
		if v.JavaScript {
			keys.ExpectText(`^3 selected$`)
		}
		keys.Click("Revoke selected")
		keys.In("region", "Selected keys").ExpectText("Revoke these 3 keys?")
	})
}

// Browsers have no clipboard for scripts over plain http, unless the host is local.
func TestCopyButtonsWorkOverPlainHTTP(t *testing.T) {
	t.Parallel()
	p := ownPortal(t, settings{})
	site := strings.Replace(p.URL, "127.0.0.1", "shop.test", 1)
	p.stop(t)
	p.settings.baseURL = site
	p.resume(t)
	c := p.newCustomer(t)
	v := visit(t, site)
	v.allow("Cross-Origin-Opener-Policy header has been ignored")
	c.signIn(v.Tab)
	keys := pages.ExpectKeys(v.Tab)
	if v.Evaluate(`() => isSecureContext`) == true {
		t.Fatal("the page has a clipboard")
	}
	reveal := keys.Generate("copied")
	secret := reveal.Secret()
	clipboard.Lock()
	reveal.Copy()
	reveal.ExpectCopied()
	reveal.Done()
	reveal.ExpectClosed()
	keys.Focus("textbox", "Label")
	v.Press("Control+V")
	pasted := keys.Value("Label")
	clipboard.Unlock()
	if pasted != secret {
		t.Errorf("the clipboard has %q, want the key", pasted)
	}
}

// tools/screenshot writes the controls of the page beside its picture.
func TestThePictureInREADMEShowsThePage(t *testing.T) {
	t.Parallel()
	v := startSeeded(t)
	snapshot := modelstest.Value(v.Page.Locator("main").AriaSnapshot())(t)
	control := regexp.MustCompile(`\b(?:heading|form|region|link|button|textbox|searchbox|combobox|columnheader|checkbox) "[^"]*"|group: .+`)
	date := regexp.MustCompile(`\d{1,2} [A-Z][a-z]{2}`)
	got := date.ReplaceAllString(strings.Join(control.FindAllString(snapshot, -1), "\n"), "DATE") + "\n"
	if want := readFile(t, filepath.Join("..", "tools", "screenshot.txt")); got != want {
		t.Errorf("the page is not that of the picture in README.md: run `make screenshot`\n%s", firstDifference(want, got))
	}
}

func firstDifference(want, got string) string {
	was, is := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(was), len(is)) {
		if was[i] != is[i] {
			return fmt.Sprintf("line %d: %q in the picture, %q on the page", i+1, was[i], is[i])
		}
	}
	return fmt.Sprintf("%d lines in the picture, %d on the page", len(was), len(is))
}
