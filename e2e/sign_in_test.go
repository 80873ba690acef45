package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/playwright-community/playwright-go"
	"github.com/pquerna/otp/totp"

	"portal/e2e/pages"
	"portal/handlers/handlerstest"
	"portal/handlers/mailer/mailertest"
	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

// Signing out in one tab ends the session in the others. They return to their page after a new
// sign-in.
func TestAnEndedSessionLeadsToSignInAndBack(t *testing.T) {
	inBothModes(t, func(t *testing.T, p *process, mode profile) {
		c, v := startSignedIn(t, p, mode, inWholeChromium)
		v.allowStatus(http.StatusUnauthorized)
		keys := pages.OpenKeys(v.Tab)
		pages.OpenKeys(v.secondTab(t)).SignOut()
		keys.Click("Generate key")
		pages.ExpectLogin(v.Tab).SignIn(c.email, c.password)
		keys = pages.ExpectKeys(v.Tab)
		keys.ExpectNone()
		keys.Add("in time")
		keys.SignOut()
		v.Back()
		v.ExpectNowhere("in time")
	})
}

func TestAnOpenPageSaysThatItsSessionHasEnded(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t))
	keys := pages.OpenKeys(v.Tab)
	restrictions := keys.OpenRestrictions()
	restrictions.Fill("Allowed networks", "192.0.2.0/24")
	second := v.secondTab(t)
	pages.OpenKeys(second).SignOut()
	const ended = `Your session has ended\. Your input is still here\.`
	v.LookAgain()
	keys.ExpectAlert(ended)
	c.signIn(second)
	v.LookAgain()
	keys.ExpectNoAlert()
	// The page has not noticed this end when the form is submitted.
	pages.OpenKeys(second).SignOut()
	keys.Submit("Website")
	keys.ExpectAlert(ended)
	c.signIn(second)
	keys.Click("Generate key")
	reveal := pages.ExpectReveal(v.Tab)
	reveal.ExpectText("from 1 network")
	reveal.Copy()
	reveal.Done()
	// Another user signs in.
	v.allowStatus(http.StatusForbidden)
	pages.OpenKeys(second).SignOut()
	other := sharedPortal(t).newCustomer(t)
	other.signIn(second)
	keys.Submit("Website")
	keys.ExpectAlert("now signed in as " + regexp.QuoteMeta(other.email) + ", so this page is out of date and nothing was changed")
	v.LookAgain()
	keys.ExpectAlert("Open the pages of this user")
	pages.OpenKeys(second).ExpectNone()
}

// otherWays is a portal on which users sign in by email, by a link of the operator and at an OpenID
// Connect provider.
type otherWays struct {
	*process

	mails    *mailertest.Server
	provider *handlerstest.Provider
}

const operatorToken = "operator-token-of-the-browser-tests"

func startOtherWays(t *testing.T) otherWays {
	t.Helper()
	address := modelstest.Value(subprocess.FreeAddress())(t)
	w := otherWays{mails: mailertest.Start(t), provider: handlerstest.StartProvider(t, "http://"+address)}
	c := w.provider.Config
	w.process = ownPortal(t, settings{address: address, extra: append(
		mailSettings(w.mails.URL()), "PORTAL_OPERATOR_TOKEN="+operatorToken, "PORTAL_OIDC_ISSUER="+c.Issuer,
		"PORTAL_OIDC_CLIENT_ID="+c.ClientID, "PORTAL_OIDC_CLIENT_SECRET="+c.ClientSecret, "PORTAL_OIDC_NAME="+c.Name,
	)})
	return w
}

func mailSettings(url string) []string {
	return []string{"PORTAL_SMTP_URL=" + url, "PORTAL_MAIL_FROM=portal@example.com"}
}

// allowProvider allows the messages of the provider's own page, which loads a font from another
// site and lacks an icon.
func (v *visitor) allowProvider() {
	v.allow("ERR_NAME_NOT_RESOLVED|ERR_INTERNET_DISCONNECTED|status of 404|Input elements should have autocomplete")
}

func TestOtherWaysToSignIn(t *testing.T) {
	t.Parallel()
	w := startOtherWays(t)
	for name, mode := range map[string]profile{"with JavaScript": withJavaScript, "without JavaScript": withoutJavaScript} {
		for way, test := range map[string]func(otherWays, *testing.T, *visitor){
			"a link by email": otherWays.resetsPassword, "a provider": otherWays.connectsProvider, "a link of the operator": otherWays.usesLink,
		} {
			t.Run(way+" "+name, func(t *testing.T) {
				t.Parallel()
				v := visit(t, w.URL, mode)
				v.allowStatus(http.StatusUnprocessableEntity, http.StatusUnauthorized, http.StatusForbidden, http.StatusGone)
				test(w, t, v)
			})
		}
	}
}

// mailedPath waits for a mail to this address with this subject, and returns the path of its link.
func mailedPath(t *testing.T, server *mailertest.Server, site, email, subject string) string {
	t.Helper()
	link := regexp.MustCompile(regexp.QuoteMeta(site) + `(/\S+)`)
	for n := 1; ; n++ {
		mail := server.Await(n)[n-1]
		if mail.To[0] != email || !strings.HasPrefix(mail.Subject, subject) {
			continue
		}
		found := link.FindStringSubmatch(mail.Text)
		if len(found) != 2 || !strings.Contains(mail.HTML, found[0]) {
			t.Fatalf("the text and the HTML have no common link:\n%s", mail.Raw)
		}
		return found[1]
	}
}

func (w otherWays) resetsPassword(t *testing.T, v *visitor) {
	c := w.newCustomer(t)
	pages.OpenLogin(v.Tab).ForgotPassword()
	pages.RequestPasswordReset(v.Tab, c.email)
	v.ExpectStatus(`(?s)If there is an account.*` + regexp.QuoteMeta(c.email))
	path := mailedPath(t, w.mails, w.URL, c.email, "Set a new password")
	pages.OpenPasswordReset(v.Tab, path)
	v.Reload() // opening the page does not use the link
	pages.ResetPassword(v.Tab, "short")
	v.ExpectAlert(`12`)
	old := c.password
	c.password = newSecret()
	pages.ResetPassword(v.Tab, c.password)
	pages.ExpectKeys(v.Tab).SignOut()
	v.Open(path)
	v.ExpectAlert(`\S`)
	login := pages.OpenLogin(v.Tab)
	login.SignIn(c.email, old)
	login.ExpectAlert(`\S`)
	c.signIn(v.Tab)

	email := "colleague-of-" + c.email
	invitation := pages.OpenPeople(v.Tab).Invite(email, "Member")
	invitation.ExpectText(`We’ve emailed ` + regexp.QuoteMeta(email))
	shown := invitation.Secret()
	invitation.Leave()
	path = mailedPath(t, w.mails, w.URL, email, "Invitation to join "+c.Name)
	if strings.HasSuffix(shown, path) {
		t.Error("the email has the link of the page")
	}
	v.clearCookies(t)
	pages.Join(v.Tab, w.URL+path, c.Name)
	pages.SubmitJoin(v.Tab, c.password)
	pages.ExpectKeys(v.Tab)
}

func (w otherWays) connectsProvider(t *testing.T, v *visitor) {
	c := w.newCustomer(t)
	v.allowProvider()
	pages.OpenLogin(v.Tab).Follow("Sign in with Acme ID")
	pages.SignInAtProvider(v.Tab, "ada-"+c.email)
	v.ExpectAlert(`isn’t linked to a user here`)
	c.signIn(v.Tab)
	account := pages.OpenAccount(v.Tab)
	account.Click("Connect Acme ID") // the browser has a session at the provider
	account.ExpectStatus(`Acme ID connected`)
	account.SignOut()

	v.Open("/agents") // leads to the sign-in page, and back
	login := pages.ExpectLogin(v.Tab)
	v.clearCookies(t)
	login.Follow("Sign in with Acme ID")
	pages.SignInAtProvider(v.Tab, "ada-"+c.email)
	pages.ExpectAgents(v.Tab)
	account = pages.OpenAccount(v.Tab)
	account.Click("Disconnect Acme ID")
	account.ExpectStatus(`Acme ID disconnected`)
	account.Expect("button", "Connect Acme ID")
	if log := w.log.String(); strings.Contains(log, w.provider.Config.ClientSecret) || strings.Contains(log, "state=") || strings.Contains(log, "code=") {
		t.Errorf("the log contains a secret:\n%s", log)
	}
}

// operate sends a request to the operator API and returns the response's fields.
func (w otherWays) operate(t *testing.T, method, path, body string) (fields map[string]any) {
	t.Helper()
	operator := modelstest.NewVisitor(t, w.URL)
	response := operator.Send(method, path, body, modelstest.Bearer(operatorToken), "Content-Type: application/json")
	modelstest.Must(t, json.Unmarshal([]byte(response.Is(http.StatusCreated).Body), &fields))
	return fields
}

func (w otherWays) usesLink(t *testing.T, v *visitor) {
	account := "/operator/accounts/" + uuid.NewString()
	w.operate(t, http.MethodPut, account, `{"name": "Acme"}`)
	c := customer{email: fmt.Sprintf("scripts-%t@example.com", v.JavaScript), password: "a much longer battery staple"}
	user := w.operate(t, http.MethodPost, account+"/users", `{"email": "`+c.email+`", "role": "owner"}`)
	link := w.operate(t, http.MethodPost, account+"/sign-in-links", fmt.Sprintf(`{"userId": %q}`, user["id"]))
	path := strings.TrimPrefix(link["url"].(string), w.URL)
	for range 2 { // opening the link twice does not use it
		pages.OpenSignInLink(v.Tab, path)
	}
	pages.UseSignInLink(v.Tab).ExpectNone()
	pages.OpenSignInLink(v.Tab, path)
	v.ExpectAlert(`used or has expired`)
	if strings.Contains(w.log.String(), path[len("/sign-in-links/"):]) {
		t.Error("the log contains the token of the link")
	}
	page := pages.OpenAccount(v.Tab)
	page.SetPassword("short")
	page.ExpectAlert(`12`)
	page.SetPassword(c.password)
	page.ExpectStatus(`Password set`)
	page.ExpectNoAlert()
	page.SignOut()
	c.signIn(v.Tab)
}

func TestTwoStepVerification(t *testing.T) {
	inBothModes(t, func(t *testing.T, p *process, mode profile) {
		c := p.newCustomer(t)
		v := visit(t, p.URL, mode)
		v.allowStatus(http.StatusUnprocessableEntity)
		c.signIn(v.Tab)
		account := pages.OpenAccount(v.Tab)
		code := modelstest.Value(totp.GenerateCode(account.SetUpAuthenticator(), time.Now()))(t)
		recovery := account.TurnOnTwoSteps(code)
		if len(recovery) != 10 {
			t.Fatalf("the recovery codes are %v", recovery)
		}
		account.SignOut()
		pages.OpenLogin(v.Tab).SignIn(c.email, c.password)
		pages.VerifySecondStep(v.Tab, code) // a used code
		v.ExpectAlert("Incorrect code.")
		pages.VerifySecondStep(v.Tab, recovery[0])
		pages.ExpectKeys(v.Tab)
		settings := pages.OpenSettings(v.Tab)
		settings.Fill("Account name", "Renamed Ltd")
		settings.Click("Save")
		settings.ExpectStatus(`was saved`)
		for _, change := range []string{"Require two-step verification", "Stop requiring two-step verification"} {
			settings.Click(change)
			settings.Click("Confirm")
		}
		settings.ExpectStatus(`no longer required`)
		account = pages.OpenAccount(v.Tab)
		account.Click("Turn off")
		account.Click("Cancel")
		account.Click("Turn off")
		account.Click("Confirm turning off")
		account.Expect("button", "Set up authenticator app")
	})
}

// A passkey is created and used with Chromium's virtual authenticator. Browsers offer passkeys on
// localhost, but not at an IP address.
func TestPasskey(t *testing.T) {
	t.Parallel()
	address := modelstest.Value(subprocess.FreeAddress())(t)
	_, port, err := net.SplitHostPort(address)
	modelstest.Must(t, err)
	site := "http://localhost:" + port
	p := ownPortal(t, settings{address: address, baseURL: site})
	c := p.newCustomer(t)
	v := visit(t, site)
	v.addAuthenticator(t)
	c.signIn(v.Tab)
	account := pages.OpenAccount(v.Tab)
	// An extension whose prompt was closed may leave the request without an answer.
	v.Evaluate(`() => {
		const create = navigator.credentials.create.bind(navigator.credentials)
		navigator.credentials.create = () => { navigator.credentials.create = create; return new Promise(() => {}) }
	}`)
	account.Click("Add a passkey")
	account.Click("Add a passkey")
	account.Passkeys().ExpectCount("listitem", 1)
	inspect(t, v.Tab).check(t, "account with a passkey")
	account.SignOut()
	pages.ExpectLogin(v.Tab).Click("Use a passkey")
	pages.ExpectKeys(v.Tab)
	account = pages.OpenAccount(v.Tab)
	account.Passkeys().Click("Remove")
	account.Passkeys().ExpectFocus("button", "Cancel")
	account.Passkeys().Click("Confirm removal")
	account.Passkeys().ExpectCount("listitem", 0)

	modelstest.Exec(t, p.settings.databaseURL, "UPDATE sessions SET authenticated_at = '2026-01-01 00:00:00+00:00'")
	v.allowStatus(http.StatusForbidden)
	pages.OpenPeople(v.Tab)
	v.Fill("Email", "ada@example.com")
	v.Click("Invite")
	v.ExpectHeading("Confirm it’s you")
	v.ExpectNoAlert()
	account = pages.OpenAccount(v.Tab)
	account.Click("Add a passkey")
	v.ExpectHeading("Confirm it’s you")
	v.Fill("Current password", c.password)
	v.Click("Continue")
	account.ExpectFocus("button", "Add a passkey")
	v.Press("Enter")
	account.Passkeys().ExpectCount("listitem", 1)

	account.SignOut()
	v.allow("ERR_INTERNET_DISCONNECTED")
	modelstest.Must(t, v.context.SetOffline(true))
	v.Click("Use a passkey")
	v.ExpectAlert(`Can’t reach the portal\.`)
	modelstest.Must(t, v.context.SetOffline(false))
	elsewhere := visit(t, "http://"+address)
	pages.OpenLogin(elsewhere.Tab).Click("Use a passkey")
	elsewhere.ExpectAlert(`Passkeys work only at localhost\.`)
}

// Passkeys work with the answers of extensions, and in browsers without the JSON methods. A passkey
// whose provider begins to copy it to other devices stays valid.
func TestPasskeysOfExtensionsAndOlderBrowsers(t *testing.T) {
	t.Parallel()
	address := modelstest.Value(subprocess.FreeAddress())(t)
	_, port, err := net.SplitHostPort(address)
	modelstest.Must(t, err)
	site := "http://localhost:" + port
	p := ownPortal(t, settings{address: address, baseURL: site})
	// answering replaces the answers of the browser.
	answering := func(answer string) string {
		return `for (const call of ["create", "get"]) {
			const original = navigator.credentials[call].bind(navigator.credentials)
			navigator.credentials[call] = async (options) => {
				const credential = await original(options), { id, rawId, type, response } = credential
				` + answer + `
			}
		}`
	}
	for name, script := range map[string]string{
		"toJSON throws": answering(`credential.toJSON = () => { throw new TypeError("Illegal invocation") }; return credential`),
		"a plain object": answering(`const fields = ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]
			return { id, rawId: new Uint8Array(rawId), type, response: Object.fromEntries(fields.map((name) => [name, response[name]])) }`),
		"no JSON methods": `delete PublicKeyCredential.parseCreationOptionsFromJSON; delete PublicKeyCredential.parseRequestOptionsFromJSON
			delete PublicKeyCredential.prototype.toJSON`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := p.newCustomer(t)
			v := visit(t, site)
			modelstest.Must(t, v.context.AddInitScript(playwright.Script{Content: &script}))
			setFlags := v.addAuthenticator(t)
			c.signIn(v.Tab)
			account := pages.OpenAccount(v.Tab)
			account.Click("Add a passkey")
			account.Passkeys().ExpectCount("listitem", 1)
			for _, copied := range []bool{false, true, false} {
				setFlags(copied)
				account.SignOut()
				pages.ExpectLogin(v.Tab).Click("Use a passkey")
				pages.ExpectKeys(v.Tab)
				account = pages.OpenAccount(v.Tab)
			}
		})
	}
}

// addAuthenticator adds a virtual authenticator that verifies its user to the tab. The returned
// function sets whether its passkey is, and can be, copied to other devices.
func (v *visitor) addAuthenticator(t *testing.T) (setCopied func(bool)) {
	t.Helper()
	session := modelstest.Value(v.context.NewCDPSession(v.Page))(t)
	options := map[string]any{
		"protocol": "ctap2", "transport": "internal", "hasResidentKey": true, "hasUserVerification": true,
		"isUserVerified": true, "automaticPresenceSimulation": true,
	}
	modelstest.Value(session.Send("WebAuthn.enable", map[string]any{}))(t)
	added, _ := modelstest.Value(session.Send("WebAuthn.addVirtualAuthenticator", map[string]any{"options": options}))(t).(map[string]any)
	id := added["authenticatorId"]
	return func(copied bool) {
		t.Helper()
		answer, _ := modelstest.Value(session.Send("WebAuthn.getCredentials", map[string]any{"authenticatorId": id}))(t).(map[string]any)
		credentials, _ := answer["credentials"].([]any)
		for _, one := range credentials {
			credential, _ := one.(map[string]any)
			modelstest.Value(session.Send("WebAuthn.setCredentialProperties", map[string]any{
				"authenticatorId": id, "credentialId": credential["credentialId"], "backupEligibility": copied, "backupState": copied,
			}))(t)
		}
	}
}
