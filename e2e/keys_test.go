package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"portal/e2e/pages"
)

var wholeKey = regexp.MustCompile(`^nas_[0-9A-Za-z]{36}$`)

// The whole life of a key: generate, use, revoke.
func TestACustomerGeneratesUsesAndRevokesAKey(t *testing.T) {
	inBothModes(t, func(t *testing.T, p *process, mode profile) {
		c := p.newCustomer(t)
		agentID := c.newAgent(t, "Front desk")
		v := visit(t, p.URL, mode, withClipboard, withMotion)
		v.allowStatus(http.StatusUnauthorized, http.StatusUnprocessableEntity)

		v.Open("/activity")
		login := pages.ExpectLogin(v.Tab)
		login.SignIn(c.email, "not "+c.password)
		login.ExpectAlert(`\S`)
		login.SignIn(c.email, c.password)
		v.ExpectPath("/activity")
		frame := pages.Frame{Tab: v.Tab}
		frame.ExpectCurrent("Activity")
		frame.Navigate("API Keys")
		keys := pages.ExpectKeys(v.Tab)
		keys.ExpectNone()

		keys.Submit(strings.Repeat("long ", 20) + "!")
		keys.ExpectExplained("Label")
		reveal := keys.Generate("production")
		secret := reveal.Secret()
		if n := v.Occurrences(secret); n != 1 || !wholeKey.MatchString(secret) {
			t.Errorf("the page contains the key %q %d times, want once", secret, n)
		}
		if v.JavaScript {
			if got := v.copied(func() {
				reveal.Copy()
				reveal.ExpectCopied()
			}); got != secret {
				t.Errorf("the clipboard holds %q, want the key", got)
			}
		}
		reveal.Done()
		reveal.ExpectClosed()
		keys.ExpectNoAlert()
		if keys.Value("Label") != "" {
			t.Error("the form still has the label")
		}

		keys.ExpectColumns()
		row := keys.Row("production")
		if v.JavaScript {
			row.ExpectFocused()
		}
		row.ExpectCell("Key", pages.Masked(secret))
		row.ExpectCell("Last Used", "Never")
		v.ExpectNowhere(secret)
		c.expectServed(t, secret, agentID)
		keys = pages.OpenKeys(v.Tab)
		row.ExpectUsed()

		confirmation := row.Revoke()
		confirmation.ExpectSaying(`Still in use\. Used just now, 1 request in the last 24 hours`)
		confirmation.ExpectFocus("button", "Cancel")
		confirmation.Click("Cancel")
		confirmation.ExpectClosed()
		c.expectServed(t, secret, agentID)
		row.Revoke().Confirm()
		keys.ExpectStatus(`revoked`)
		keys.ExpectNone()
		c.expectRefused(t, secret, agentID)

		pages.OpenActivity(v.Tab).ExpectInOrder(`revoked the API key production`, `generated the API key production`)
		pages.OpenKeys(v.Tab).SignOut()
		v.Open("/api-keys")
		pages.ExpectLogin(v.Tab)
	})
}

func TestTheRowOfAKeyShowsItsUseAndIsRenamed(t *testing.T) {
	inBothModes(t, func(t *testing.T, p *process, mode profile) {
		c, v := startSignedIn(t, p, mode)
		v.allowStatus(http.StatusUnprocessableEntity)
		agentID, secret := c.newAgent(t, "Front desk"), c.newKey(t, "busy")
		for range 3 {
			c.expectServed(t, secret, agentID)
		}
		keys := pages.OpenKeys(v.Tab)
		row := keys.Row("busy")
		row.ExpectAttribute("link", "Usage of busy", "title", "3 requests in the last 30 days")
		chart := row.Usage("busy")
		today := time.Now().UTC().Format("2 Jan 2006")
		chart.ExpectSaying(`3 requests in the last 30 days, all on ` + today)
		chart.FocusDay()
		if v.JavaScript {
			v.Press("ArrowLeft")
			chart.ExpectDay(`: 0 requests$`)
			v.Press("ArrowRight")
		}
		chart.ExpectDay(today + `: 3 requests$`)
		keys = pages.OpenKeys(v.Tab)
		keys.ExpectColumns()

		row.ExpectActions("Rename", "Restrictions", "Rotate", "Replace a lost key")
		row.OpenMenu()
		if v.JavaScript {
			row.ExpectMenu("true")
		}
		v.Press("Escape")
		row.ExpectNo("button", "Rename")
		row.ExpectMenu("false")
		row.ExpectFocusOnMenu()
		rename := row.Rename()
		rename.Save(" ")
		keys.ExpectAlert(`Enter a name\.`)
		if got := rename.Value("New name"); got != " " {
			t.Errorf("the field holds %q, want the input", got)
		}
		const label = `<img src=x onerror=alert(1)> & "quotes" – Zürich 🚀`
		rename.Save(label)
		keys.ExpectStatus(`<img`)
		keys.Row("busy").ExpectGone()
		row = keys.Row(label)
		row.ExpectFocusOnMenu()
		row.ExpectCell("Label", label)
		row.Rename().Click("Cancel")
		row.ExpectFocusOnMenu()
		if v.JavaScript {
			row.Rename()
			v.Press("Escape")
			row.ExpectFocusOnMenu()
		}
	})
}

func TestTheKeyIsManagedFromItsPage(t *testing.T) {
	inBothModes(t, func(t *testing.T, p *process, mode profile) {
		c, v := startSignedIn(t, p, mode)
		agentID, secret := c.newAgent(t, "Front desk"), c.newKey(t, "first")
		c.newKey(t, "other")
		c.expectServed(t, secret, agentID)
		key := pages.OpenKeys(v.Tab).Row("first").Page("first")
		key.ExpectCurrent("API Keys")
		key.ExpectFact("Access", "Agents and tokens")
		key.ExpectFact("Expires", "Never")
		key.ExpectFact("Agents", "All")
		key.ExpectFact("Networks", "Any address")
		key = key.Rename("second")
		asked := key.Revoke("second")
		asked.ExpectOpen()
		v.ExpectNo("table", "Active API keys")
		asked.Click("Cancel")
		key = pages.ExpectKey(v.Tab, "second")
		asked = key.Revoke("second")
		asked.Reason("replaced")
		asked.Confirm()
		key = pages.ExpectKey(v.Tab, "second")
		key.ExpectNo("button", "Revoke")
		key.ExpectNo("link", "Rename")
		key.ExpectFact("Reason", "replaced")
		c.expectRefused(t, secret, agentID)
		key.Follow("All keys")
		pages.ExpectKeys(v.Tab).Row("second").ExpectGone()
	})
}

func TestADoubleClickSendsOneForm(t *testing.T) {
	t.Parallel()
	_, v := startSignedIn(t, sharedPortal(t))
	keys := pages.OpenKeys(v.Tab)
	keys.Fill("Label", "once")
	keys.DoubleClick("Generate key")
	pages.ExpectReveal(v.Tab).Abandon()
	if n := v.count(http.MethodPost, "/api-keys", http.StatusConflict); n != 0 || keys.Count() != 1 {
		t.Errorf("%d repeated forms were sent, and there are %d keys", n, keys.Count())
	}
	agents := pages.OpenAgents(v.Tab)
	agents.Fill("Name", "Front desk")
	agents.DoubleClick("Create agent")
	agents.ExpectStatus(`“Front desk” was created`)
	pages.OpenAgents(v.Tab).List().ExpectCount("listitem", 1)
}

// The server creates the key, but the browser does not get the response. A second key would be in
// no list of the user, and the value of the first cannot be shown again.
func TestARepeatedFormSaysThatTheKeyExists(t *testing.T) {
	t.Parallel()
	_, v := startSignedIn(t, sharedPortal(t))
	v.allowStatus(http.StatusConflict)
	v.allow("net::ERR_FAILED|Failed to fetch")
	keys := pages.OpenKeys(v.Tab)
	v.loseResponses(t, "/api-keys", 1)
	keys.Submit("only one")
	keys.ExpectAlert(`again`)
	if got := keys.Value("Label"); got != "only one" {
		t.Errorf("the field holds %q, want the input", got)
	}
	keys.Click("Generate key")
	v.ExpectAlert(`only one.*nas_\.\.\.`)
	v.In("alert", "").Follow("Revoke this key")
	pages.AskedOn(v.Tab, "only one").Confirm()
	keys = pages.ExpectKeys(v.Tab)
	keys.ExpectStatus(`revoked`)
	keys.ExpectNone()
}

func TestATakenLabelGetsAWarning(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	secret := c.newKey(t, "Production")
	keys := pages.OpenKeys(v.Tab)
	for label, taken := range map[string]bool{"production ": true, "Production 2": false} {
		keys.Fill("Label", label)
		if taken {
			keys.ExpectText(`Another active key has this label: ` + regexp.QuoteMeta(pages.Masked(secret)))
		} else {
			keys.ExpectNoText(`Another active key has this label`)
		}
	}
	keys.Generate("Production").Abandon()
	keys.ExpectNoText(`Another active key has this label`)
}

// Every action of a key's life works without a mouse, keeps the focus in the page and is announced.
func TestTheJourneyWorksByKeyboard(t *testing.T) {
	t.Parallel()
	c := sharedPortal(t).newCustomer(t)
	v := visit(t, c.URL, withClipboard)
	pages.OpenLogin(v.Tab)
	v.ExpectFocus("textbox", "Email")
	v.TypeText(c.email)
	v.Press("Tab")
	v.TypeText(c.password)
	v.Press("Enter")
	keys := pages.ExpectKeys(v.Tab)

	v.TabTo("Tab", "link", "Skip to content")
	v.TabTo("Tab", "textbox", "Label")
	v.TypeText("typed")
	v.Press("Enter")
	reveal := pages.ExpectReveal(v.Tab)
	secret := reveal.Secret()
	v.Press("Escape")
	reveal.ExpectGate()
	v.TabTo("Tab", "button", "Copy key")
	if got := v.copied(func() {
		v.Press("Enter")
		reveal.ExpectCopied()
	}); got != secret {
		t.Errorf("the clipboard holds %q, want the key", got)
	}
	v.TabTo("Tab", "button", "Done")
	v.Press("Space")
	reveal.ExpectClosed()
	v.ExpectFocusInPage()

	v.TabTo("Tab", "button", "Revoke")
	confirmation := keys.Row("typed").Asked()
	for _, cancel := range []string{"Escape", "Enter"} { // the focus is on Cancel
		v.Press("Enter")
		confirmation.ExpectOpen()
		confirmation.ExpectFocus("button", "Cancel")
		v.Press(cancel)
		confirmation.ExpectClosed()
	}
	v.Press("Enter")
	confirmation.ExpectFocus("button", "Cancel")
	v.TabTo("Shift+Tab", "button", "Confirm revoke")
	v.ExpectAnnounced(`revoked`, func() { v.Press("Enter") })
	keys.ExpectNone()
	v.ExpectFocusInPage()

	v.TabTo("Shift+Tab", "link", "Activity")
	v.Press("Enter")
	v.ExpectPath("/activity")
	v.TabTo("Tab", "button", "Sign out")
	v.Press("Enter")
	pages.ExpectLogin(v.Tab)
}

// The response to a revocation is lost. The page then checks whether the key was revoked, and says
// so.
func TestThePageChecksTheOutcomeOfALostRevocation(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	v.allow("ERR_FAILED|Failed to fetch")
	c.newKeys(t, 3, "key %d")
	keys := pages.OpenKeys(v.Tab)

	confirmation := keys.Row("key 1").Revoke()
	v.loseResponses(t, "/api-keys/*/revocation", 1)
	const polls = "**/revocation/outcome*"
	v.withoutPolls(t, polls, func() {
		confirmation.Confirm()
		keys.ExpectAlert(`may or may not`)
	})
	keys.ExpectStatus(`was revoked`)
	keys.Row("key 1").ExpectGone()
	v.ExpectFocusInPage()

	confirmation = keys.Row("key 2").Revoke()
	v.loseRequests(t, "**/revocation", 1)
	v.withoutPolls(t, polls, func() {
		confirmation.Confirm()
		keys.ExpectAlert(`may or may not`)
	})
	confirmation.ExpectSaying(`Checked at .*: the key is still active`)
	confirmation.Confirm()
	keys.ExpectStatus(`was revoked`)
	keys.Row("key 2").ExpectGone()
	keys.Row("key 3").ExpectShown()
}

func TestAKeyIsRestricted(t *testing.T) {
	inBothModes(t, func(t *testing.T, p *process, mode profile) {
		c := p.newCustomer(t)
		c.newAgent(t, "Front desk")
		v := visit(t, p.URL, mode)
		v.allowStatus(http.StatusUnprocessableEntity)
		pages.OpenLogin(v.Tab).SignIn(c.email, c.password)
		keys := pages.ExpectKeys(v.Tab)
		date := time.Now().UTC().AddDate(0, 0, 2).Format(time.DateOnly)
		restrictions := keys.OpenRestrictions()
		restrictions.Set(date, "Front desk", "192.0.2.7/24")
		keys.Submit("production")
		restrictions.ExpectExplained("Allowed networks")
		restrictions.Fill("Allowed networks", "192.0.2.0/24")
		if networks := restrictions.AddAddress(); !strings.Contains(networks, "192.0.2.0/24\n127.0.0.1") {
			t.Errorf("the networks are %q", networks)
		}
		keys.Generate("production").Abandon()
		row := keys.Row("production")
		row.ExpectText(`Expires in 3 days`)
		row.ExpectText(`1 agent`)
		row.ExpectText(`2 networks`)

		restrictions = row.Restrictions("production")
		restrictions.Choose("Expires", "Never")
		restrictions.Save(strings.Repeat("x", 501))
		restrictions.ExpectExplained("Note")
		restrictions.Save("for the shop")
		keys = pages.ExpectKeys(v.Tab)
		keys.Row("production").ExpectNoText(`Expires`)
		confirmation := keys.Row("production").Revoke()
		confirmation.Reason("no longer needed")
		confirmation.Confirm()
		keys.ExpectStatus(`revoked`)
		keys.OpenRevoked().Row("production").ExpectText(`no longer needed`)
	})
}
