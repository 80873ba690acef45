package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
)

// inspector checks a page for accessibility and layout, in light and dark and at several widths.
type inspector struct {
	*pages.Tab
	axe string
}

func inspect(t *testing.T, b *pages.Tab) inspector {
	t.Helper()
	found, err := theRun.getTools()
	if err != nil {
		t.Fatal(err)
	}
	axe, err := os.ReadFile(found.axe())
	if err != nil {
		t.Fatal(err)
	}
	return inspector{Tab: b, axe: string(axe)}
}

// check checks the current state of the page, which failures call state. It checks colors at every
// width in both color schemes, and all other rules once at each width.
func (i inspector) check(t *testing.T, state string) {
	t.Helper()
	defer i.resize(t, 1280)
	for _, view := range []struct {
		scheme *playwright.ColorScheme
		width  int
		rules  string
	}{
		{playwright.ColorSchemeLight, 1280, allRules},
		{playwright.ColorSchemeLight, 360, colorRules},
		{playwright.ColorSchemeDark, 360, allRules},
		{playwright.ColorSchemeDark, 1280, colorRules},
	} {
		if err := i.Page.EmulateMedia(playwright.PageEmulateMediaOptions{ColorScheme: view.scheme}); err != nil {
			t.Fatal(err)
		}
		i.resize(t, view.width)
		i.expectNoMotion(t, state)
		for _, violation := range i.violations(t, view.rules) {
			t.Errorf("%s, %s, %d px wide: %s", state, *view.scheme, view.width, violation)
		}
	}
	for _, width := range []int{360, 320} {
		i.resize(t, width)
		for _, culprit := range i.overflowing(t) {
			t.Errorf("%s, %d px wide: %s", state, width, culprit)
		}
	}
}

// checkWidths checks that the page fits every width from 320 to 1400 px, and that tables and lists
// of steps contain all of their content.
func (i inspector) checkWidths(t *testing.T, state string) {
	t.Helper()
	defer i.resize(t, 1280)
	for width := 320; width <= 1400; width += 16 {
		i.resize(t, width)
		for _, culprit := range append(i.overflowing(t), i.protruding(t)...) {
			t.Errorf("%s, %d px wide: %s", state, width, culprit)
		}
	}
}

// Options of axe-core that select its rules.
const (
	allRules   = `{}`
	colorRules = `{runOnly: {type: "rule", values: ["color-contrast", "link-in-text-block"]}}`
)

// expectNoMotion checks that nothing is animated under reduced motion. It also ends transitions, so
// that axe-core never measures a color in transition.
func (i inspector) expectNoMotion(t *testing.T, state string) {
	t.Helper()
	animated, err := i.Page.Evaluate(`async () => {
		await new Promise(resolve => setTimeout(resolve, 50)) // a color transition starts with the next frame
		const running = document.getAnimations()
		for (const animation of running) {
			try { animation.finish() } catch { animation.cancel() /* it has no end */ }
		}
		return [...new Set(running.map(a => a.effect.target.localName + " (" + (a.transitionProperty || a.animationName) + ")"))].join(", ")
	}`)
	if err != nil {
		t.Fatal(err)
	}
	if animated != "" {
		t.Errorf("%s: animated despite reduced motion: %s", state, animated)
	}
}

func (i inspector) resize(t *testing.T, width int) {
	t.Helper()
	if err := i.Page.SetViewportSize(width, 800); err != nil {
		t.Fatal(err)
	}
}

// violations returns the violations that axe-core finds.
func (i inspector) violations(t *testing.T, rules string) []string {
	t.Helper()
	loaded, err := i.Page.Evaluate(`() => typeof axe !== "undefined"`)
	if err != nil {
		t.Fatal(err)
	}
	if loaded != true {
		if _, err := i.Page.Evaluate(i.axe + "; undefined"); err != nil {
			t.Fatalf("load axe-core: %v", err)
		}
	}
	result, err := i.Page.Evaluate(`async () => JSON.stringify((await axe.run(document, {...` + rules + `, preload: false, resultTypes: ["violations"]})).violations)`)
	if err != nil {
		t.Fatalf("run axe-core: %v", err)
	}
	var violations []struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}
	if err := json.Unmarshal([]byte(result.(string)), &violations); err != nil {
		t.Fatalf("read the violations: %v", err)
	}
	var found []string
	for _, v := range violations {
		for _, node := range v.Nodes {
			found = append(found, fmt.Sprintf("%s (%s)\n\t%s\n\t%s", v.ID, v.Help, node.HTML, strings.ReplaceAll(node.FailureSummary, "\n", "\n\t")))
		}
	}
	return found
}

// overflowing returns the elements that make the page or an open dialog scroll sideways.
func (i inspector) overflowing(t *testing.T) []string {
	t.Helper()
	return i.culprits(t, `() => {
		const name = e => "<" + e.localName + (e.id ? " id=" + e.id : "") + "> " + (e.textContent || "").trim().slice(0, 40)
		const culprits = []
		for (const box of [document.documentElement, ...document.querySelectorAll("dialog[open]")]) {
			if (box.scrollWidth <= box.clientWidth) continue
			const edge = box.getBoundingClientRect().left + box.clientLeft + box.clientWidth
			culprits.push("scrolls sideways: " + box.scrollWidth + " px in " + box.clientWidth + " px")
			const scrolls = e => e !== box && (getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement))
			for (const e of box.querySelectorAll("*")) {
				if (e.getBoundingClientRect().right > edge + 1 && !scrolls(e.parentElement)) culprits.push("too wide: " + name(e))
			}
		}
		return culprits.slice(0, 8)
	}`)
}

// protruding returns the elements that lie outside their table, their list of steps or the window.
func (i inspector) protruding(t *testing.T) []string {
	t.Helper()
	return i.culprits(t, `() => {
		const culprits = []
		const shown = e => e.getClientRects().length > 0 && getComputedStyle(e).clipPath === "none"
		for (const box of document.querySelectorAll("table, main ol")) {
			const {left, right} = box.getBoundingClientRect()
			for (const e of box.querySelectorAll(":is(th, td, li), :is(th, td, li) :not(svg *)")) {
				if (e.closest("th") && !shown(e.closest("th")) || !shown(e)) continue
				const at = e.getBoundingClientRect()
				if (at.left < Math.max(left, 0) - 1 || at.right > Math.min(right, innerWidth) + 1)
					culprits.push("beyond the edge: <" + e.localName + "> " + e.textContent.trim().slice(0, 40))
			}
		}
		return culprits.slice(0, 8)
	}`)
}

// culprits runs script, a function that returns descriptions of elements.
func (i inspector) culprits(t *testing.T, script string) []string {
	t.Helper()
	found, err := i.Page.Evaluate(script)
	if err != nil {
		t.Fatal(err)
	}
	var culprits []string
	for _, culprit := range found.([]any) {
		culprits = append(culprits, fmt.Sprint(culprit))
	}
	return culprits
}
