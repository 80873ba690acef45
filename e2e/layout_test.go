package e2e

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
	"portal/models/modelstest"
)

// seeded is the user of the account that demo seed creates for all tests, which change nothing.
var (
	seeded struct {
		Email, Password string
		Keys            struct{ Active struct{ ID string } }
	}
	seed sync.Once
)

// startSeeded opens the portal as the seeded user.
func startSeeded(t *testing.T) *visitor {
	t.Helper()
	p := sharedPortal(t)
	seed.Do(func() {
		modelstest.Must(t, json.Unmarshal([]byte(p.operator(t, nil, "", "demo", "seed", "--json")), &seeded))
	})
	v := visit(t, p.URL)
	pages.OpenLogin(v.Tab).SignIn(seeded.Email, seeded.Password)
	pages.ExpectKeys(v.Tab)
	return v
}

// wholeRows returns how many rows are wholly in the window, and where the first one begins.
const wholeRows = `selector => {
	const boxes = [...document.querySelectorAll(selector)].map(row => row.getBoundingClientRect())
	return [boxes[0].top, boxes.filter(({ top, bottom }) => top >= 0 && bottom <= innerHeight).length]
}`

// A user sees the list, rather than what is above it.
func TestTheListsAreOnTheFirstScreen(t *testing.T) {
	t.Parallel()
	v := startSeeded(t)
	for _, view := range []struct {
		path, rows    string
		width, height int
		top           float64 // limit of the first row, px
		whole         int     // the fewest rows that are seen
	}{
		{path: "/api-keys", rows: "#api-key-rows > tr", width: 1440, height: 900, top: 262, whole: 12},
		{path: "/api-keys", rows: "#api-key-rows > tr", width: 360, height: 780, top: 430, whole: 3},
		{path: "/activity", rows: ".feed .item", width: 360, height: 780, top: 360, whole: 1},
	} {
		modelstest.Must(t, v.Page.SetViewportSize(view.width, view.height))
		v.Open(view.path)
		result := modelstest.Value(v.Page.Evaluate(wholeRows, view.rows))(t).([]any)
		top, whole := number(result[0]), number(result[1])
		if top > view.top || whole < float64(view.whole) {
			t.Errorf("%s at %d x %d px: the first row begins at %v px and %v rows are seen, want %v px and %d",
				view.path, view.width, view.height, top, whole, view.top, view.whole)
		}
	}
}

// calm returns the height of the tallest row, the controls of the closed form, the words of the
// page, and its controls with a border, but for Generate. "1 minute ago" is "just
// now" on a faster machine.
const calm = `() => {
	const all = selector => [...document.querySelectorAll(selector)].filter(e => e.checkVisibility({opacityProperty: true}) && e.getClientRects().length)
	const bordered = e => {
		const {borderTopWidth, borderTopStyle, borderTopColor} = getComputedStyle(e)
		return borderTopStyle !== "none" && borderTopWidth !== "0px" && borderTopColor !== "rgba(0, 0, 0, 0)"
	}
	return [
		Math.max(...all("#api-key-rows > tr").map(row => row.getBoundingClientRect().height)),
		all("#api-key-form :is(input, button, select, textarea, summary)").length,
		document.querySelector("main").innerText.replace(/\d+ minutes? ago/g, "just now").split(/\s+/).filter(Boolean).length,
		all("main :is(a, button, input, select, textarea, summary):not(.primary)").filter(bordered).length,
	]
}`

// The page of keys says and offers no more than it needs.
func TestThePageOfKeysIsCalm(t *testing.T) {
	t.Parallel()
	v := startSeeded(t)
	modelstest.Must(t, v.Page.SetViewportSize(1440, 900))
	pages.OpenKeys(v.Tab)
	found := v.Evaluate(calm).([]any)
	for i, limit := range []struct {
		what string
		most float64
	}{{"px is the tallest row", 44}, {"controls are in the closed form", 4}, {"words are on the page", 220}, {"controls have a border", 4}} {
		if n := number(found[i]); n > limit.most {
			t.Errorf("%v %s, want at most %v", n, limit.what, limit.most)
		}
	}
}

// The tools of a list and the header of its table stay while it scrolls.
func TestTheToolsOfTheListStay(t *testing.T) {
	t.Parallel()
	v := startSeeded(t)
	modelstest.Must(t, v.Page.SetViewportSize(1440, 600))
	v.Open("/api-keys")
	at := v.Evaluate(`() => {
		scrollTo(0, document.documentElement.scrollHeight)
		const ys = ["#key-filter", "#key-order", "#api-key-list th"].map(e => document.querySelector(e).getBoundingClientRect().top)
		return scrollY > 200 && ys.every(y => y >= 0 && y < 100) ? "" : scrollY + ": " + ys
	}`)
	if at != "" {
		t.Errorf("after scrolling by the first number, the tools are at %v px", at)
	}
}

// A long email is not broken before its last letters.
func TestLongEmailsBreakInTheMiddle(t *testing.T) {
	t.Parallel()
	v := startSeeded(t)
	modelstest.Must(t, v.Page.SetViewportSize(360, 780))
	for _, path := range []string{"/people", "/account", "/api-keys/" + seeded.Keys.Active.ID} {
		v.Open(path)
		broken := v.Evaluate(`() => {
			const email = document.querySelector(".email"), broken = []
			for (let letters = 20; letters < 50; letters++) {
				email.textContent = "m".repeat(letters) + "@example.com"
				const tops = [...email.textContent].map((_, i) => {
					const letter = document.createRange()
					letter.setStart(email.firstChild, i)
					letter.setEnd(email.firstChild, i + 1)
					return letter.getBoundingClientRect().top
				})
				if (tops.filter(top => top === tops.at(-1)).length < 6) broken.push(letters)
			}
			return broken.join()
		}`)
		if broken != "" {
			t.Errorf("%s: emails with %v letters before @example.com have less than 6 in the last line", path, broken)
		}
	}
}

func TestTheNavigationOfAPhoneIsAMenu(t *testing.T) {
	inBothModes(t, func(t *testing.T, p *process, mode profile) {
		c, v := startSignedIn(t, p, mode)
		modelstest.Must(t, v.Page.SetViewportSize(360, 780))
		keys := pages.OpenKeys(v.Tab)
		keys.ExpectNo("navigation", "Main")
		keys.OpenMenu()
		keys.In("navigation", "Main").Follow("Usage")
		v.ExpectHeading("Usage")
		keys.OpenMenu()
		keys.ExpectCurrent("Usage")
		v.ExpectText(c.email)
		keys.SignOut()
	})
}

func TestKeysOfTheKeyboard(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	c.newKeys(t, 11, "key %d")
	keys := pages.OpenKeys(v.Tab)
	v.Press("/")
	keys.ExpectFocus("searchbox", "Filter keys")
	v.TypeText("/")
	keys.ExpectText(`^0 of 11 shown$`)
	keys.Filter("")
	row := keys.Row("key 11")
	row.OpenMenu()
	for _, step := range []struct {
		key, role, name string
	}{{"ArrowDown", "button", "Rename"}, {"ArrowDown", "link", "Restrictions"}, {"ArrowUp", "button", "Rename"}, {"ArrowUp", "link", "Replace a lost key"}, {"Home", "button", "Rename"}} {
		v.Press(step.key)
		row.ExpectFocus(playwright.AriaRole(step.role), step.name)
	}
	v.Press("Escape")
	row.ExpectMenu("false")
	row.Revoke().Confirm()
	keys.ExpectStatus(`was revoked`)
	keys.Click("Dismiss")
	keys.ExpectNo("button", "Dismiss")
	v.ExpectFocusInPage()
}

// number returns a number of a page, which the driver decodes as an int or a float64.
func number(value any) float64 {
	if n, ok := value.(int); ok {
		return float64(n)
	}
	return value.(float64)
}
