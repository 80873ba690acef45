package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"portal/e2e/pages"
	"portal/models/modelstest"
)

// state is a state of a page that must be accessible and fit its window.
type state struct {
	name  string
	reach func() // from the state before
}

// checkStates reaches one state after the other and checks each.
func checkStates(t *testing.T, v *visitor, states []state) {
	t.Helper()
	v.allow(`status of 4\d\d|status of 503|ERR_FAILED|Failed to fetch`)
	// A change of the width ends a transition between two pages.
	v.allow(`Transition was aborted because of invalid state. Viewport size changed`)
	i := inspect(t, v.Tab)
	for _, s := range states {
		s.reach()
		i.check(t, s.name)
	}
}

// Long names and labels without spaces show whether a page fits.
var (
	unbroken = strings.Repeat("W", 100)
	tooLong  = strings.Repeat("long ", 20) + "!"
)

func TestEveryStateOfTheKeysIsAccessibleAndFits(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	keys := pages.OpenKeys(v.Tab)
	var reveal pages.Reveal
	var confirmation pages.Confirmation
	var rename pages.Rename
	var revoked pages.Area
	var page pages.Key
	agentID, secret := c.newAgent(t, "Front desk"), ""
	checkStates(t, v, []state{
		{"no keys", func() {}},
		{"a label refused", func() { keys.Submit(tooLong); keys.ExpectAlert(`\S`) }},
		{"a key revealed", func() { reveal = keys.Generate(unbroken); secret = reveal.Secret() }},
		{"a key revealed and used", func() {
			c.expectServed(t, secret, agentID)
			reveal.Dialog.ExpectStatus(`First request received`)
		}},
		{"a key not copied", func() { reveal.ShowExample(); reveal.Done(); reveal.ExpectGate() }},
		{"a sorted list", func() {
			reveal.CloseWithoutCopying()
			reveal.ExpectClosed()
			c.newKeys(t, 10, "idle %d")
			keys = pages.OpenKeys(v.Tab)
			keys.SortBy("Label")
		}},
		{"an open menu", func() { keys.Row("idle 3").OpenMenu() }},
		{"a rename refused", func() {
			v.Press("Escape")
			rename = keys.Row("idle 1").Rename()
			rename.Save(" ")
			keys.ExpectAlert(`\S`)
		}},
		{"a revocation to confirm", func() { rename.Click("Cancel"); confirmation = keys.Row(unbroken).Revoke() }},
		{"a revocation with an unknown outcome", func() {
			v.loseRequests(t, "**/revocation", 1)
			confirmation.Confirm()
			confirmation.ExpectSaying(`couldn’t confirm`)
		}},
		{"a filtered list", func() { keys.Filter("idle") }},
		{"nothing found", func() { keys.Filter("none") }},
		{"a revocation announced", func() {
			keys = pages.OpenKeys(v.Tab)
			keys.Row(unbroken).Revoke().Confirm()
			keys.ExpectStatus(`revoked`)
		}},
		{"restrictions refused", func() {
			restrictions := pages.OpenKeys(v.Tab).OpenRestrictions()
			restrictions.Fill("Allowed networks", "here")
			keys.Submit("restricted")
			restrictions.ExpectExplained("Allowed networks")
		}},
		{"the page of a key", func() { page = pages.OpenKeys(v.Tab).Row("idle 1").Page("idle 1") }},
		{"the question on a page", func() { page.Revoke("idle 1").ExpectOpen() }},
		{"a trust rule after its generation", func() {
			keys = pages.OpenKeys(v.Tab)
			keys.Fill("Label", "deploy")
			keys.TrustWorkload("GitHub Actions").Fill("Repository", "acme/shop")
			keys.Click("Generate key")
			pages.ExpectTrust(v.Tab, "deploy")
		}},
		{"leaked keys", func() {
			c.PostJSON("/leaks", `{"keys": ["`+c.newKey(t, "leaked")+`"]}`).Is(http.StatusAccepted)
			pages.OpenKeys(v.Tab).Expect("group", "Leaked keys")
		}},
		{"the restrictions of a key", func() { pages.OpenKeys(v.Tab).Row("idle 1").Restrictions("idle 1") }},
		{"revoked keys", func() { c.expectRefused(t, secret, agentID); revoked = pages.OpenKeys(v.Tab).OpenRevoked() }},
		{"the chart of a revoked key", func() {
			revoked.Row(unbroken).Expect("cell", c.email)
			revoked.Row(unbroken).Follow("1 refused")
			v.ExpectText(`1 refused`)
		}},
		// This is the page for browsers without JavaScript. axe-core needs JavaScript.
		{"a key revealed on a page", func() { pages.OpenKeys(v.Tab).SubmitAsPage("as a page"); v.ExpectHeading("API key generated") }},
		{"a form repeated", func() { v.Reload(); v.ExpectAlert(`nas_\.\.\.`) }},
	})
}

func TestEveryStateOfARotationIsAccessibleAndFits(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	agentID, before := c.newAgent(t, "Front desk"), c.newKey(t, unbroken)
	c.expectServed(t, before, agentID)
	var rotation pages.Rotation
	var reveal pages.Reveal
	after := ""
	checkStates(t, v, []state{
		{"a rotation not started", func() { rotation = pages.OpenKeys(v.Tab).Row(unbroken).Rotate() }},
		{"a replacement revealed", func() { reveal = rotation.Replace(); after = reveal.Secret() }},
		{"a replacement not used yet", func() { reveal.Leave() }},
		{"an old key still in use", func() {
			c.expectServed(t, after, agentID)
			rotation.ExpectStep(stepFirst, `First request received`)
		}},
		{"an old key to revoke", func() { rotation.Revoke() }},
	})
}

func TestEveryOtherPageIsAccessibleAndFits(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	var agents pages.Agents
	var account pages.Account
	authenticator := ""
	checkStates(t, v, []state{
		{"examples without an agent", func() { pages.OpenIntegrate(v.Tab) }},
		{"no agents", func() { agents = pages.OpenAgents(v.Tab) }},
		{"a name refused", func() { agents.Create(tooLong); agents.ExpectAlert(`\S`) }},
		{"a list of agents", func() {
			c.newAgent(t, unbroken)
			agents.Create("Front desk")
			agents.Row("Front desk").ExpectShown()
		}},
		{"a new name of an agent", func() { agents.Row("Front desk").Click("Rename"); agents.Expect("button", "Save name") }},
		{"removal of an agent to confirm", func() { agents.Click("Cancel"); agents.StartRemoval("Front desk") }},
		{"examples", func() { pages.OpenIntegrate(v.Tab).ChooseLanguage("Go") }},
		{"usage of no keys", func() { pages.OpenUsage(v.Tab) }},
		{"usage of keys", func() {
			c.expectServed(t, c.newKey(t, unbroken), c.newAgent(t, "Night shift"))
			usage := pages.OpenUsage(v.Tab)
			usage.Follow("90 days")
			usage.ShowKey(unbroken)
		}},
		{"the restrictions of a used key", func() { pages.OpenKeys(v.Tab).Row(unbroken).Restrictions(unbroken) }},
		{"activity", func() { c.newKey(t, unbroken); pages.OpenActivity(v.Tab) }},
		{"no activity of a kind", func() {
			activity := pages.OpenActivity(v.Tab)
			activity.Filter("Renamed keys")
			activity.ExpectText("No matching activity")
		}},
		{"account", func() {
			c.signIn(visit(t, c.URL, asPhone).Tab)
			account = pages.OpenAccount(v.Tab)
			account.ExpectSessions(2)
		}},
		{"a password refused", func() { account.ChangePassword("wrong", "short"); account.ExpectAlert(`\S`) }},
		{"a session ended", func() {
			account.Sessions().Row("Safari on iPhone").Click("End session")
			account.ExpectStatus(`ended`)
		}},
		{"set-up of an authenticator app", func() { authenticator = account.SetUpAuthenticator() }},
		{"recovery codes", func() {
			account.Fill("Code", modelstest.Value(totp.GenerateCode(authenticator, time.Now()))(t))
			account.Click("Turn on")
			account.Click("Done")
			account.ExpectAlert(`These codes have not been copied`)
		}},
		{"settings", func() { account.Click("Close without copying"); pages.OpenSettings(v.Tab) }},
		{"not found", func() { v.Open("/no-such-page") }},
		{"API reference", func() { pages.OpenDocs(v.Tab, "/docs", "Use the API") }},
		{"guides", func() { pages.OpenDocs(v.Tab, "/docs/guides", "Guides") }},
		{"gateway", func() { pages.OpenDocs(v.Tab, "/docs/gateway", "Run behind a gateway") }},
		{"changelog", func() { pages.OpenDocs(v.Tab, "/docs/changelog", "Changelog") }},
	})
}

func TestEveryStateOfPeopleIsAccessibleAndFits(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	guest := visit(t, c.URL)
	people := pages.OpenPeople(v.Tab)
	email, link := strings.Repeat("w", 60)+"-"+c.email, ""
	var reveal pages.Reveal
	checkStates(t, v, []state{
		{"one person", func() {}},
		{"an email refused", func() { people.Submit("no email", "Member"); people.ExpectAlert(`\S`) }},
		{"an invitation", func() { reveal = people.Invite(email, "Member"); link = reveal.Secret() }},
		{"a list with an invitation", func() { reveal.Leave(); people.Row(email).ExpectShown() }},
	})
	checkStates(t, guest, []state{
		{"a password refused", func() {
			pages.Join(guest.Tab, link, c.Name)
			pages.SubmitJoin(guest.Tab, "short")
			guest.ExpectAlert(`\S`)
		}},
		{"people as a member", func() {
			pages.SubmitJoin(guest.Tab, c.password)
			pages.ExpectKeys(guest.Tab).Add(unbroken)
			pages.OpenPeople(guest.Tab)
		}},
		{"a used invitation", func() { guest.Open(strings.TrimPrefix(link, c.URL)) }},
	})
	checkStates(t, v, []state{
		{"a removal to confirm", func() {
			people = pages.OpenPeople(v.Tab)
			people.Row(email).Click("Remove")
			people.Expect("button", "Confirm removal")
		}},
		{"keys of a removed person", func() { people.Click("Confirm removal"); people.ExpectStatus(`was removed`) }},
		{"the last owner", func() { pages.OpenPeople(v.Tab).Row(c.email).ExpectText(`The last owner`) }},
	})
}

func TestEveryWayToSignInIsAccessibleAndFits(t *testing.T) {
	t.Parallel()
	w := startOtherWays(t)
	c := w.newCustomer(t)
	v := visit(t, w.URL)
	v.allowProvider()
	var login pages.Login
	path := ""
	checkStates(t, v, []state{
		{"sign-in with a provider", func() { login = pages.OpenLogin(v.Tab) }},
		{"sign-in refused", func() { login.SignIn(c.email, "wrong"); login.ExpectAlert(`\S`) }},
		{"an email refused", func() {
			login.ForgotPassword()
			pages.RequestPasswordReset(v.Tab, "no email")
			v.ExpectAlert(`Enter an email address`)
		}},
		{"a link requested", func() { pages.RequestPasswordReset(v.Tab, c.email); v.ExpectStatus(`If there is`) }},
		{"a link to set a password", func() {
			path = mailedPath(t, w.mails, w.URL, c.email, "Set a new password")
			pages.OpenPasswordReset(v.Tab, path)
		}},
		{"a new password refused", func() { pages.ResetPassword(v.Tab, "short"); v.ExpectAlert(`12`) }},
		{"a used link", func() {
			pages.ResetPassword(v.Tab, c.password)
			pages.ExpectKeys(v.Tab)
			v.Open(path)
		}},
		{"an unknown identity", func() {
			v.clearCookies(t)
			pages.OpenLogin(v.Tab).Follow("Sign in with Acme ID")
			pages.SignInAtProvider(v.Tab, "somebody")
			v.ExpectAlert(`isn’t linked to a user here`)
		}},
		{"a connected provider", func() {
			c.signIn(v.Tab)
			account := pages.OpenAccount(v.Tab)
			account.Click("Connect Acme ID")
			account.ExpectStatus(`Acme ID connected`)
		}},
		{"a sent invitation", func() { pages.OpenPeople(v.Tab).Invite("colleague@example.com", "Member") }},
	})
	account := "/operator/accounts/0198c2f4-5d10-7b0f-8a3c-6c1de2f90a11"
	v.clearCookies(t)
	w.operate(t, http.MethodPut, account, `{"name": "Acme"}`)
	user := w.operate(t, http.MethodPost, account+"/users", `{"email": "ada@example.com", "role": "owner"}`)
	link := w.operate(t, http.MethodPost, account+"/sign-in-links", `{"userId": "`+user["id"].(string)+`"}`)
	checkStates(t, v, []state{
		{"sign-in link", func() { pages.OpenSignInLink(v.Tab, strings.TrimPrefix(link["url"].(string), w.URL)) }},
		{"an account without a password", func() { pages.UseSignInLink(v.Tab); pages.OpenAccount(v.Tab) }},
	})
}
