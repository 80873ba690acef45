package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
	"portal/models/modelstest"
)

// inspector checks a page for accessibility and layout, in light and dark and at several widths.
type inspector struct {
	*pages.Tab

	axe  string
	seen map[string]string // by the options of axe.run, the keys of parts
}

func inspect(t *testing.T, b *pages.Tab) inspector {
	t.Helper()
	axe := string(modelstest.Value(os.ReadFile(modelstest.Value(sharedTools())(t).axe))(t))
	return inspector{Tab: b, axe: axe, seen: map[string]string{}}
}

// check checks the current state of the page, which failures call state, on a desktop in light
// colors and on a phone in dark colors. Of axe-core's rules only some depend on either, so the
// other ones are checked once.
func (i inspector) check(t *testing.T, state string) {
	t.Helper()
	for _, view := range []struct {
		scheme *playwright.ColorScheme
		narrow []int // widths at which controls may overlap
		width  int
		rules  string // options of axe.run
	}{
		{playwright.ColorSchemeDark, []int{320, 360}, 360, visualRules},
		{playwright.ColorSchemeLight, nil, 1440, allRules},
	} {
		modelstest.Must(t, i.Page.EmulateMedia(playwright.PageEmulateMediaOptions{ColorScheme: view.scheme}))
		for _, width := range view.narrow {
			i.resize(t, width)
			for _, pair := range i.overlapping() {
				t.Errorf("%s, %d px wide: %s", state, width, pair)
			}
		}
		i.resize(t, view.width)
		i.expectNoMotion(t, state)
		for _, violation := range append(i.violations(t, view.rules), i.overflowing()...) {
			t.Errorf("%s, %s, %d px wide: %s", state, *view.scheme, view.width, violation)
		}
	}
	if at := i.Evaluate(columnOfContent); at != nil && at != "248 to 1440" {
		t.Errorf("%s: the content is at %v px, want the place that it has on all pages", state, at)
	}
}

// allRules and visualRules are options of axe.run. The visual rules depend on the width or the
// colors: they measure them, or they are about parts that one width hides.
const (
	allRules    = `{}`
	visualRules = `{runOnly: {type: "rule", values: ["color-contrast", "link-in-text-block", "target-size",
		"scrollable-region-focusable", "aria-hidden-focus", "button-name", "link-name", "empty-table-header",
		"heading-order", "landmark-one-main", "landmark-unique", "page-has-heading-one", "region", "skip-link"]}}`
)

const columnOfContent = `() => {
	const main = document.querySelector("body:has(nav[aria-label=Main]) main")
	const at = main?.getBoundingClientRect()
	return at ? at.left + " to " + at.right : null
}`

// checkWidths checks that the page fits in the smallest and in a wide window and on each side of
// the breakpoints, and that tables and lists of steps contain all of their content.
func (i inspector) checkWidths(t *testing.T, state string) {
	t.Helper()
	for _, width := range []int{320, 480, 481, 640, 641, 1023, 1024, 1280} {
		i.resize(t, width)
		for _, culprit := range append(i.overflowing(), i.protruding()...) {
			t.Errorf("%s, %d px wide: %s", state, width, culprit)
		}
	}
}

// checkLargeText checks that the page fits with text at 200 %, which the browser's zoom of text
// alone shows.
func (i inspector) checkLargeText(t *testing.T, state string) {
	t.Helper()
	i.resize(t, 1280)
	i.Evaluate(`() => { document.documentElement.style.fontSize = "200%" }`)
	for _, culprit := range append(i.overflowing(), i.protruding()...) {
		t.Errorf("%s, text at 200 %%: %s", state, culprit)
	}
	i.Evaluate(`() => { document.documentElement.style.fontSize = "" }`)
}

// expectNoMotion checks that nothing is animated under reduced motion. It also ends transitions, so
// that axe-core never measures a color in transition.
func (i inspector) expectNoMotion(t *testing.T, state string) {
	t.Helper()
	animated := i.Evaluate(`async () => {
		// A color transition starts with the next frame.
		await new Promise(resolve => setTimeout(resolve, 50))
		const running = document.getAnimations()
		for (const animation of running) {
			try { animation.finish() } catch { animation.cancel() /* it has no end */ }
		}
		return [...new Set(running.map(a => a.effect.target.localName + " (" + (a.transitionProperty || a.animationName) + ")"))].join(", ")
	}`)
	if animated != "" {
		t.Errorf("%s: animated despite reduced motion: %s", state, animated)
	}
}

func (i inspector) resize(t *testing.T, width int) {
	t.Helper()
	modelstest.Must(t, i.Page.SetViewportSize(width, 800))
}

// repeatedCode returns the blocks of code whose language and kinds of words all occur in the blocks
// above them. They have most of the elements of a page, and nothing that axe-core has not seen.
const repeatedCode = `(() => {
	const seen = new Set()
	return [...document.querySelectorAll("pre code")].filter((code) => {
		const other = [code, ...code.querySelectorAll("*")].filter((e) => !seen.has(e.className))
		if (code.checkVisibility()) other.forEach((e) => seen.add(e.className))
		return other.length === 0
	})
})()`

// newParts is a function that gets the keys of parts and returns the parts of the page with these
// keys, and the keys of all others. A part is an element with children. Parts have the same key if
// they differ only in their text, ids, addresses and values, which axe-core does not look at, and
// if all above them do too.
const newParts = `(seen) => {
	const known = new Set(seen.split(" ")), added = [], repeated = []
	const refers = (ids) => ids.split(" ").every((id) => document.getElementById(id))
	const attribute = ({ name, value }) => {
		if (name === "href" && value.startsWith("#")) return name + refers(value.slice(1))
		if (/^(for|popovertarget|aria-(?!label$).*)$/.test(name)) return name + (refers(value) || value)
		return name + (/^(class|role|type|lang|tabindex|scope)$/.test(name) ? value : value.trim() && "=")
	}
	const own = (e) => {
		const { color, backgroundColor, fontSize, fontWeight, opacity } = getComputedStyle(e)
		return [e.localName, ...[...e.attributes].map(attribute), e.checkVisibility({ visibilityProperty: true }),
			color, backgroundColor, fontSize, fontWeight, opacity, e.scrollWidth > e.clientWidth, e.scrollHeight > e.clientHeight,
			e.matches("a, button, input, select, textarea, summary") && Math.round(e.getBoundingClientRect().height)].join()
	}
	const owns = new Map(), wholes = new Map()
	const read = (node) => {
		if (!(node instanceof Element)) return node.nodeType === Node.TEXT_NODE && node.data.trim() ? "text" : ""
		owns.set(node, own(node))
		wholes.set(node, owns.get(node) + "<" + [...node.childNodes].map(read).join("") + ">")
		return wholes.get(node)
	}
	const hash = (text) => {
		let sum = 0
		for (let n = 0; n < text.length; n++) sum = Math.imul(sum, 31) + text.charCodeAt(n) | 0
		return sum + "." + text.length
	}
	const visit = (e, above) => {
		const key = hash(above + wholes.get(e))
		if (known.has(key)) return repeated.push(e)
		if (e !== document.body && e.childElementCount > 0) known.add(key) && added.push(key)
		for (const child of e.children) visit(child, hash(above + owns.get(e)))
	}
	read(document.body)
	visit(document.body, "")
	return [repeated, added.join(" ")]
}`

// violations returns the violations that axe-core finds with these options in the parts of the page
// that it has not seen with them.
func (i inspector) violations(t *testing.T, options string) (found []any) {
	t.Helper()
	if i.Evaluate(`() => typeof axe !== "undefined"`) != true {
		modelstest.Value(i.Page.Evaluate(i.axe + "; undefined"))(t)
	}
	result := modelstest.Value(i.Page.Evaluate(`async (seen) => {
		const [repeated, parts] = (`+newParts+`)(seen)
		const exclude = [...repeated, ...`+repeatedCode+`]
		const { violations } = await axe.run({ exclude }, { preload: false, resultTypes: ["violations"], ...`+options+` })
		return JSON.stringify({ violations, parts })
	}`, i.seen[options]))(t)
	var answer struct {
		Violations []struct {
			ID, Help string
			Nodes    []struct{ HTML, FailureSummary string }
		}
		Parts string
	}
	modelstest.Must(t, json.Unmarshal([]byte(result.(string)), &answer))
	i.seen[options] += answer.Parts + " "
	for _, v := range answer.Violations {
		for _, node := range v.Nodes {
			found = append(found, fmt.Sprintf("%s (%s)\n\t%s\n\t%s", v.ID, v.Help, node.HTML, strings.ReplaceAll(node.FailureSummary, "\n", "\n\t")))
		}
	}
	return found
}

// overflowing returns the elements that make the page or an open dialog scroll sideways.
func (i inspector) overflowing() []any {
	return i.Evaluate(`() => {
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
	}`).([]any)
}

// overlapping returns the pairs of controls that lie over each other. The button in a password
// field may, and an open menu, dialog or notice over the page.
func (i inspector) overlapping() []any {
	return i.Evaluate(`() => {
		const shown = e => e.checkVisibility() && getComputedStyle(e).clipPath === "none" && !e.closest(".spoken, .skip-link, .toast")
		const layer = e => e.closest("dialog[open], :popover-open")
		const controls = [...document.querySelectorAll("a, button, input, select, textarea, summary")].filter(shown)
			.flatMap(e => [...e.getClientRects()].map(box => ({e, box})))
		const name = e => "<" + e.localName + "> " + (e.getAttribute("aria-label") || e.textContent || e.id).trim().slice(0, 30)
		const pairs = []
		controls.forEach(({e, box}, n) => controls.slice(n + 1).forEach(({e: other, box: at}) => {
			if (e === other || layer(e) !== layer(other) || e.parentElement.matches(".password-input") || e.contains(other)) return
			const [width, height] = [Math.min(box.right, at.right) - Math.max(box.left, at.left), Math.min(box.bottom, at.bottom) - Math.max(box.top, at.top)]
			if (width > 0.5 && height > 0.5) pairs.push(name(e) + " and " + name(other) + " overlap by " + width.toFixed(1) + " x " + height.toFixed(1) + " px")
		}))
		return pairs.slice(0, 8)
	}`).([]any)
}

// protruding returns the elements that lie outside their table, their list of steps or the window.
// An open menu may lie outside its table.
func (i inspector) protruding() []any {
	return i.Evaluate(`() => {
		const culprits = []
		const shown = e => e.getClientRects().length > 0 && getComputedStyle(e).clipPath === "none"
		for (const box of document.querySelectorAll("table, main ol")) {
			const {left, right} = box.getBoundingClientRect()
			for (const e of box.querySelectorAll(":is(th, td, li), :is(th, td, li) :not(svg *)")) {
				if (e.closest("th") && !shown(e.closest("th")) || !shown(e)) continue
				const at = e.getBoundingClientRect()
				const [from, to] = e.closest(":popover-open") ? [0, innerWidth] : [Math.max(left, 0), Math.min(right, innerWidth)]
				if (at.left < from - 1 || at.right > to + 1)
					culprits.push("beyond the edge: <" + e.localName + "> " + e.textContent.trim().slice(0, 40))
			}
		}
		return culprits.slice(0, 8)
	}`).([]any)
}
