package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
	"portal/models/modelstest"
	"portal/models/value"
)

func TestTheListIsSortedAndFilteredWhileTyping(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	c.newKeys(t, 10, "key %d")
	pages.OpenKeys(v.Tab).ExpectNo("searchbox", "Filter keys")
	c.newKey(t, "Alpha")
	keys := pages.OpenKeys(v.Tab)
	keys.Filter("ey 1")
	keys.ExpectLabels("key 10", "key 1")
	keys.ExpectText(`^2 of 11 shown$`)
	keys.SortBy("Label")
	keys.ExpectLabels("key 1", "key 10")
	keys.ExpectFocus("combobox", "Sort by")
	v.Reload()
	keys.ExpectLabels("Alpha", "key 1", "key 2", "key 3", "key 4", "key 5", "key 6", "key 7", "key 8", "key 9", "key 10")
	// A row that opens stays where it is.
	modelstest.Must(t, v.Page.SetViewportSize(1280, 640))
	v.Evaluate(`() => scrollTo(0, 150)`)
	confirmation := keys.Row("key 5").Revoke()
	confirmation.ExpectFocus("button", "Cancel")
	if y := fmt.Sprint(v.Evaluate(`() => scrollY`)); y != "150" {
		t.Errorf("the page scrolled from 150 to %s", y)
	}
	v.Press("Escape")
	confirmation.ExpectClosed()
	keys.Filter(fmt.Sprint(v.Evaluate(`() => [...document.querySelectorAll("#api-key-rows tr")]
		.find((row) => row.textContent.includes("key 7")).id.slice("api-key-".length)`))) // from a log
	keys.ExpectLabels("key 7")
	keys.Filter("none of them")
	keys.ExpectText("No keys match this filter")
	keys.Table().ExpectHidden()
	secret := keys.Add("beside it")
	keys.Row("key 5").ExpectShown() // the new key ends the filter
	keys.Filter(secret[len(secret)-4:])
	keys.ExpectLabels("beside it")
	keys.Row("beside it").Revoke().Confirm()
	keys.ExpectText(`^0 of 11 shown$`)
}

// Input methods cancel a composition with Escape, and files of macOS have names with accents apart.
func TestLabelsAreTypedWithAnyKeyboard(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	c.newKeys(t, 10, "key %d")
	c.newKey(t, "Zürich")
	keys := pages.OpenKeys(v.Tab)
	v.Evaluate(`() => { document.querySelector("#api-key-rows").prepend(document.createElement("tr")) }`) // an extension's
	keys.Filter("\u200bzu\u0308rich ")
	keys.ExpectLabels("Zürich")
	rename := keys.Row("Zürich").Rename()
	v.Evaluate(`() => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", isComposing: true, bubbles: true }))`)
	rename.ExpectFocus("textbox", "New name")
	v.Press("Escape")
	keys.ExpectNo("textbox", "New name")
}

// A user who found a key pastes it into the filter. The key must not reach a URL, where the
// browser's history and the logs of proxies would keep it.
func TestAKeyPastedIntoTheFilterReachesNoURL(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	c.newKeys(t, 11, "another %d")
	secret := c.newKey(t, "found in a log")
	keys := pages.OpenKeys(v.Tab)
	var mu sync.Mutex
	var sent []string
	v.Page.OnRequest(func(request playwright.Request) {
		body, _ := request.PostData()
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, request.Method()+" "+request.URL()+" "+body)
	})
	for _, text := range []string{secret, "NAS_API_KEY=" + secret + " # production"} {
		keys.Filter(text)
		keys.ExpectAlert(`This looks like a whole key`)
		keys.ExpectLabels("found in a log")
	}
	v.ExpectNowhere(secret)
	keys.SortBy("Label")
	keys.ExpectLabels("found in a log")
	keys.Row("found in a log").Revoke().Confirm()
	keys.ExpectStatus(`was revoked`)
	keys.ExpectNoAlert()
	keys.ExpectText("No keys match this filter")
	mu.Lock()
	defer mu.Unlock()
	for _, request := range append(sent, v.Page.URL()) {
		if strings.Contains(request, secret[:12]) || strings.Contains(request, "filter") {
			t.Errorf("the filter was sent: %s", request)
		}
	}
}

// Another tab changes the same account. The rows that the user has open keep their state and the
// focus.
func TestTheListRefreshesWithoutDisturbingOpenRows(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	// The test moves the page's clock forward, which makes requests under way time out.
	v.allow(`htmx:error: timeout`)
	modelstest.Must(t, v.Page.Clock().Install())
	agentID, secret := c.newAgent(t, "Front desk"), c.newKey(t, "used elsewhere")
	c.newKey(t, "revoked elsewhere")
	path := c.Get("/api-keys").Find(`(?s)revoked elsewhere.*?action="(/api-keys/[0-9a-f-]+)/name"`)
	c.newKey(t, "asked about")
	asked := c.Get("/api-keys").Find(`(?s)>asked about<.*?action="(/api-keys/[0-9a-f-]+)/name".*>revoked elsewhere<`)
	keys := pages.OpenKeys(v.Tab)
	later := func() {
		t.Helper()
		modelstest.Must(t, v.Page.Clock().FastForward("00:16"))
	}

	keys.Row("asked about").Revoke().ExpectFocus("button", "Cancel")
	c.Post(path+"/revocation", nil).Is(http.StatusSeeOther)
	c.Post(asked+"/name", url.Values{"name": {"renamed elsewhere"}}).Is(http.StatusSeeOther)
	c.newKey(t, "made elsewhere")
	c.expectServed(t, secret, agentID)

	sent := func() int { return v.count(http.MethodGet, "/api-keys/changes", http.StatusOK) }
	before := sent()
	later()
	keys.Row("made elsewhere").ExpectShown()
	keys.Row("revoked elsewhere").ExpectGone()
	keys.Row("used elsewhere").ExpectUsed()
	confirmation := keys.Row("renamed elsewhere").Asked()
	confirmation.ExpectOpen()
	confirmation.ExpectFocus("button", "Cancel")
	v.Press("Escape")
	confirmation.ExpectClosed()
	keys.Row("made elsewhere").OpenMenu()

	later()
	if n := sent() - before; n != 1 {
		t.Errorf("the list was sent %d times, want once:\n%s", n, v.transcript())
	}
	c.newKey(t, "another")
	later()
	keys.Row("another").ExpectShown()
	keys.Row("made elsewhere").ExpectMenu("true")
	keys.Row("made elsewhere").Expect("button", "Rename")
	for range 4 {
		later()
	}
	keys.Row("used elsewhere").ExpectCell("Last Used", "1 minute ago")
}

func TestTheFormIsDisabledAtTheLimitOfKeys(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	c.newKeys(t, value.MaxActiveKeys-1, "key %d")
	keys := pages.OpenKeys(v.Tab)
	keys.Add("the last")
	keys.ExpectAttribute("button", "Generate key", "disabled", "")
	keys.ExpectText(`^You’ve reached the limit of 100 active keys`)
	keys.Row("key 50").Revoke().Confirm()
	keys.ExpectNoText(`This account has 100 active keys`)
	keys.Generate("another")
}

// maxPhoneHeight is the limit for the height of a key on a phone, in pixels: the label, a line of
// cells, two lines of usage, and below them the buttons.
const maxPhoneHeight = 144

func TestTheListKeepsItsLayout(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	unbroken := strings.Repeat("W", 100)
	c.newKeys(t, 10, "Production backend %d")
	for _, label := range []string{"renamed", "revoked", strings.Repeat("long ", 19) + "label", unbroken} {
		c.newKey(t, label)
	}
	i := inspect(t, v.Tab)
	keys := pages.OpenKeys(v.Tab)
	for _, width := range []int{1280, 768} {
		i.resize(t, width)
		before := keys.ColumnPositions()
		keys.Filter("rename")
		keys.Row("renamed").Rename().ExpectOneLine("Save name", "Cancel")
		if after := keys.ColumnPositions(); !slices.Equal(before, after) {
			t.Errorf("%d px wide: a filter or an open row moves columns from %v to %v", width, before, after)
		}
		keys.Row("renamed").Click("Cancel")
		keys.Row("renamed").ExpectFocusOnMenu()
		keys.Filter("")
	}
	i.resize(t, 360)
	if height := keys.Table().Height() / keys.Count(); height > maxPhoneHeight {
		t.Errorf("a key is %d px tall, want at most %d", height, maxPhoneHeight)
	}
	keys.Row("Production backend 5").ExpectCellsDrawn()
	keys.Row("revoked").Revoke()
	room := `() => {
		const [row, box, label] = ["", " input", " .label-text"].map(part => document.querySelector("#api-key-rows .confirming" + part).getBoundingClientRect())
		return [box.left - row.left >= 8, box.top + box.height / 2 === label.top + label.height / 2].join()
	}`
	if got := v.Evaluate(room); got != "true,true" {
		t.Errorf("the checkbox stands away from the edge of an open row, beside the label: %v", got)
	}
	keys.Row("renamed").Rename()
	keys.Row("Production backend 5").OpenMenu()
	if low := keys.LowControls(); len(low) > 0 {
		t.Errorf("lower than 44 px: %v", low)
	}
	i.checkWidths(t, "open rows")
	i.checkLargeText(t, "open rows")
	rotation := pages.OpenKeys(v.Tab).Row("revoked").Rotate()
	rotation.Replace().Leave()
	i.checkWidths(t, "a started rotation")
}

// Selected keys stay selected while the list refreshes, and are revoked after one question.
func TestSelectedKeysAreRevokedTogether(t *testing.T) {
	inBothModes(t, func(t *testing.T, p *process, mode profile) {
		c, v := startSignedIn(t, p, mode)
		for _, label := range []string{"first", "second", "kept"} {
			c.newKey(t, label)
		}
		asked := pages.OpenKeys(v.Tab).Select("first", "second")
		asked.ExpectText("Revoke these 2 keys?")
		asked.Click("Cancel")
		keys := pages.ExpectKeys(v.Tab)
		asked = keys.Select("first", "second")
		asked.Unfold("Add a reason")
		asked.Fill("Reason", "No longer used")
		asked.Click("Confirm revoke")
		keys = pages.ExpectKeys(v.Tab)
		keys.ExpectStatus(`2 API keys were revoked`)
		keys.ExpectLabels("kept")
	})
}
