package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/e2e/pages"
)

// generate generates a key by HTTP, as another window would.
func (c customer) generate(t *testing.T, cookies []*http.Cookie, label string) {
	t.Helper()
	form := url.Values{"label": {label}, "form_id": {uuid.NewString()}}
	if status, _ := postForm(t, c.at.URL+"/api-keys", form, cookies); status != http.StatusOK {
		t.Fatalf("generating a key by HTTP returned %d", status)
	}
}

func TestDetailsOpenUnderTheirKey(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, _, keys := startSignedIn(t, sharedPortal(t), mode)
		agentID := c.newAgent(t, "Front desk")
		secret := keys.Add("busy")
		keys.Add("idle")
		for range 3 {
			backend{site: c.at.URL, key: secret}.expectServed(t, agentID)
		}
		keys = pages.OpenKeys(keys.Tab)
		today := time.Now().UTC().Format("2 Jan 2006")
		details := keys.Row("busy").Usage()
		details.ExpectSaying(`3 requests in the last 30 days, 3 of them on ` + today)
		details.ExpectChart(`3 in total`)
		details.ExpectDay(0, today+`: 3 requests$`)
		details.ExpectDay(1, `: 0 requests$`)
		keys.Row("idle").ExpectUsageClosed()
		details.Close()
		keys.ExpectColumns()
	})
}

func TestAKeyIsRenamedInPlace(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		_, v, keys := startSignedIn(t, sharedPortal(t), mode)
		v.allowStatus(http.StatusUnprocessableEntity)
		keys.Add("before")
		rename := keys.Row("before").Rename()
		rename.Save(" ")
		keys.ExpectAlertSaying(`label`)
		rename.ExpectOpen(" ")
		rename.Save("after")
		keys.ExpectStatusSaying(`“after”`)
		keys.ExpectListed("after")
		keys.ExpectNotListed("before")
		keys.Row("after").ExpectFocusOnMenu()

		keys.Row("after").Rename().Cancel()
		keys.ExpectListed("after")
		if v.JavaScript {
			keys.Row("after").Rename().Escape()
			keys.Row("after").ExpectFocusOnMenu()
		}
	})
}

func TestTheListIsSorted(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, v, _ := startSignedIn(t, sharedPortal(t), mode)
		cookies := v.cookies(t)
		for _, label := range []string{"key 10", "Alpha", "key 1"} {
			c.generate(t, cookies, label)
		}
		keys := pages.OpenKeys(v.Tab)
		keys.SortBy("Label", "ascending")
		keys.ExpectLabels("Alpha", "key 1", "key 10")
		if v.JavaScript {
			keys.ExpectFocus("link", "Label")
		}
		v.Reload()
		keys.ExpectLabels("Alpha", "key 1", "key 10")
	})
}

func TestTheListIsFilteredWhileTyping(t *testing.T) {
	t.Parallel()
	c, v, _ := startSignedIn(t, sharedPortal(t))
	cookies := v.cookies(t)
	for i := range 10 {
		c.generate(t, cookies, fmt.Sprintf("key %d", i+1))
	}
	pages.OpenKeys(v.Tab).ExpectNoFilter()
	c.generate(t, cookies, "Alpha")
	keys := pages.OpenKeys(v.Tab)
	keys.Filter("ey 1")
	keys.ExpectLabels("key 10", "key 1")
	keys.ExpectTextSaying(`^2 of 11 shown$`)
	keys.ExpectOneStatus()
	keys.SortBy("Label", "ascending")
	keys.ExpectLabels("key 1", "key 10")
	keys.Filter("none of them")
	keys.ExpectOneEmptyBox()
	secret := keys.Add("beside it")
	keys.ExpectListed("key 5") // the new key ends the filter
	keys.Filter(secret[len(secret)-4:])
	keys.ExpectLabels("beside it")
	keys.Row("beside it").Revoke().Confirm()
	keys.ExpectTextSaying(`^0 of 11 shown$`)
}

// Another tab changes the same account. The rows that the user has open keep their state and the
// focus.
func TestTheListRefreshesWithoutDisturbingOpenRows(t *testing.T) {
	t.Parallel()
	c := sharedPortal(t).newCustomer(t)
	v := visit(t, c.at.URL)
	cookies := c.session(t)
	v.setCookies(t, cookies)
	// The test moves the page's clock forward, which makes requests under way time out.
	v.allow(`htmx:error: timeout`)
	if err := v.Page.Clock().Install(); err != nil {
		t.Fatal(err)
	}
	keys := pages.OpenKeys(v.Tab)
	agentID := c.newAgent(t, "Front desk")
	secret := keys.Add("used elsewhere")
	keys.Add("asked about")
	keys.Add("revoked elsewhere")
	later := func() {
		t.Helper()
		if err := v.Page.Clock().FastForward("00:16"); err != nil {
			t.Fatal(err)
		}
	}

	keys.Row("asked about").Usage()
	confirmation := keys.Row("asked about").Revoke()
	confirmation.ExpectFocusOnCancel()
	elsewhere := pages.OpenKeys(v.secondTab(t))
	elsewhere.Row("revoked elsewhere").Revoke().Confirm()
	elsewhere.ExpectNotListed("revoked elsewhere")
	elsewhere.Row("asked about").Rename().Save("renamed elsewhere")
	elsewhere.ExpectListed("renamed elsewhere")
	c.generate(t, cookies, "made elsewhere")
	backend{site: c.at.URL, key: secret}.expectServed(t, agentID)
	if err := elsewhere.Page.Close(); err != nil {
		t.Fatal(err)
	}

	sent := func() int { return v.count(http.MethodGet, "/api-keys/changes", http.StatusOK) }
	before := sent()
	later()
	keys.ExpectListed("made elsewhere")
	keys.ExpectNotListed("revoked elsewhere")
	keys.ExpectListed("renamed elsewhere")
	keys.Row("used elsewhere").ExpectUsed()
	confirmation = confirmation.For("renamed elsewhere")
	confirmation.ExpectOpen()
	confirmation.ExpectFocusOnCancel()
	keys.ExpectTextSaying(`Last 24 hours`)
	confirmation.Escape()

	later()
	if n := sent() - before; n != 1 {
		t.Errorf("the list was sent %d times, want once:\n%s", n, v.transcript())
	}
	for range 5 {
		later()
	}
	keys.Row("used elsewhere").ExpectText("Last Used", "1 minute ago")
}
