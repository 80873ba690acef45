package pages

import (
	"os"
	"strings"
	"time"

	"github.com/playwright-community/playwright-go"
)

// Frame is the navigation that every signed-in page shares.
type Frame struct{ *Tab }

// Navigate opens a page by its link in the main navigation.
func (f Frame) Navigate(name string) {
	f.In("navigation", "Main").Follow(name)
	f.ExpectCurrent(name)
}

// ExpectCurrent checks that the navigation marks only this link as the current page.
func (f Frame) ExpectCurrent(name string) {
	main := f.In("navigation", "Main")
	main.ExpectAttribute("link", name, "aria-current", "page")
	f.must(f.expect.Locator(main.root.Locator("[aria-current]")).ToHaveCount(1), "expect one current page")
}

// OpenMenu opens the navigation in a narrow window.
func (f Frame) OpenMenu() { f.Click("Menu") }

// SignOut signs out.
func (f Frame) SignOut() {
	f.Click("Sign out")
	ExpectLogin(f.Tab)
}

// FollowToAccount opens the account page by its link.
func (f Frame) FollowToAccount() Account {
	f.Follow("Account")
	return ExpectAccount(f.Tab)
}

// Account is the page at /account.
type Account struct{ Frame }

// OpenAccount opens the page.
func OpenAccount(b *Tab) Account {
	b.Open("/account")
	return ExpectAccount(b)
}

// ExpectAccount waits until the tab shows the page.
func ExpectAccount(b *Tab) Account {
	b.expectPage("/account", "Account")
	return Account{Frame{b}}
}

// OpenSettings opens the page at /settings. The visitor must be an owner.
func OpenSettings(b *Tab) Frame {
	b.Open("/settings")
	b.expectPage("/settings", "Settings")
	return Frame{b}
}

// Passkeys is the list of the user's passkeys.
func (a Account) Passkeys() Area { return a.In("list", "Passkeys") }

// Sessions is the list of the user's sessions.
func (a Account) Sessions() Area { return a.In("list", "Sessions") }

// ExpectSessions waits until the page lists count sessions, one of them marked as this session.
func (a Account) ExpectSessions(count int) {
	a.Sessions().ExpectCount("listitem", count)
	a.Sessions().Row("This session").ExpectShown()
	a.settled()
}

// ChangePassword submits a change of password.
func (a Account) ChangePassword(current, next string) {
	a.Fill("Current password", current)
	a.Fill("New password", next)
	a.Click("Change password")
}

// SetPassword submits a first password.
func (a Account) SetPassword(password string) {
	a.Fill("New password", password)
	a.Click("Set password")
}

// OpenEmailForm opens the form that changes the email.
func (a Account) OpenEmailForm() { a.click(a.Page.GetByText("Change email"), "Change email") }

// ChangeEmail asks for a link to a new email.
func (a Account) ChangeEmail(email, password string) {
	a.Fill("New email", email)
	a.Fill("Your password", password)
	a.Click("Send confirmation link")
}

// ConfirmEmail opens the mailed link to a new email, and confirms it.
func ConfirmEmail(b *Tab, path string) {
	b.Open(path)
	b.ExpectHeading("Confirm your new email")
	b.Click("Confirm email")
	b.ExpectHeading("Email changed")
}

// SignedInAt returns when this session began: the text, the text on hover and the exact time.
func (a Account) SignedInAt() (text, hover string, at time.Time) {
	read := Area{a.Tab, a.Sessions().Row("This session").find("time", "").First()}.
		measure(`e => [e.innerText, e.title, e.dateTime].join("|")`)
	parts := strings.Split(read.(string), "|")
	at, err := time.Parse(time.RFC3339, parts[2])
	a.must(err, "parse the exact time")
	return parts[0], parts[1], at
}

// SetUpAuthenticator opens the set-up of an authenticator app, and returns the secret for the app.
func (a Account) SetUpAuthenticator() (secret string) {
	a.Click("Set up authenticator app")
	a.ExpectHeading("Set up authenticator app")
	a.Expect("img", "QR code")
	text, err := a.Page.Locator("#authenticator-secret").TextContent()
	a.must(err, "read the secret")
	return strings.ReplaceAll(text, " ", "")
}

// TurnOnTwoSteps confirms the app with a code, and returns the recovery codes.
func (a Account) TurnOnTwoSteps(code string) (recovery []string) {
	a.Fill("Code", code)
	a.Click("Turn on")
	a.ExpectHeading("Recovery codes")
	recovery, err := a.In("list", "Recovery codes").find("listitem", "").AllInnerTexts()
	a.must(err, "read the recovery codes")
	a.must(a.Page.EmulateMedia(playwright.PageEmulateMediaOptions{Media: playwright.MediaPrint}), "print")
	a.hidden(a.find("button", "Done"), "button on paper")
	a.must(a.Page.EmulateMedia(playwright.PageEmulateMediaOptions{Media: playwright.MediaScreen}), "show the page")
	a.Click("Done")
	if a.JavaScript {
		a.ExpectAlert(`These codes have not been copied`)
		// Safari and Firefox read the file after the click, so its address must live on.
		_, err := a.Page.Evaluate(`() => { URL.revokeObjectURL = () => { document.title = "revoked" } }`)
		a.must(err, "watch the address of the file")
		saved, err := os.ReadFile(a.download("button", "Download codes"))
		a.must(err, "read the file")
		if title, err := a.Page.Title(); err != nil || title == "revoked" {
			a.t.Errorf("the address of the file was revoked at once (%v)", err)
		}
		if want := strings.Join(recovery, "\n") + "\n"; string(saved) != want {
			a.t.Errorf("the file has %q, want %q", saved, want)
		}
		a.Click("Done")
	}
	ExpectAccount(a.Tab)
	return recovery
}
