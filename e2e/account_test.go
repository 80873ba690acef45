package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
	"portal/handlers/mailer/mailertest"
)

func TestAgentsAreCreatedListedAndRemoved(t *testing.T) {
	inBothModes(t, func(t *testing.T, p *process, mode profile) {
		c, v := startSignedIn(t, p, mode, withClipboard, withMotion)
		v.allowStatus(http.StatusUnprocessableEntity)
		secret, other := c.newKey(t, "server"), c.newAgent(t, "Night shift")
		agents := pages.OpenAgents(v.Tab)
		agents.Create(" ")
		agents.ExpectAlert(`\S`)
		agents.Create("Front desk")
		agents.Row("Front desk").ExpectShown()
		agents.ExpectNoAlert()
		if v.JavaScript {
			if got := v.copied(func() {
				agents.Row("Night shift").Click("Copy ID")
				agents.ExpectStatus(`(?i)copied`)
			}); got != other {
				t.Errorf("the clipboard holds %q, not the agent's id %q", got, other)
			}
		}
		c.expectServed(t, secret, other)

		agents = pages.OpenAgents(v.Tab)
		removal := agents.StartRemoval("Night shift")
		removal.ExpectSaying(`Its last token was issued just now`)
		removal.Click("Cancel")
		removal.ExpectNo("button", "Confirm removal")
		agents.Remove("Night shift")
		agents.Row("Front desk").Click("Rename")
		agents.Fill("New name", "Reception")
		agents.Click("Save name")
		agents.Row("Reception").Expect("button", "Rename")
		c.requestToken(secret, other).Is(http.StatusNotFound).Find(`"code":"(AGENT_NOT_FOUND)"`)
		pages.OpenActivity(v.Tab).ExpectInOrder(`Front desk to Reception`, `removed the agent Night shift`, `created the agent Front desk`)
	})
}

func TestSessionsAreListedAndEnded(t *testing.T) {
	inBothModes(t, func(t *testing.T, p *process, mode profile) {
		c := p.signedIn(t)
		phone, v := visit(t, p.URL, asPhone), visit(t, p.URL, mode, inIndia, withMotion)
		c.signIn(phone.Tab)
		account := c.signIn(v.Tab).FollowToAccount()
		shown, hover, at := account.SignedInAt()
		utc := at.Format("2 Jan 2006, 15:04:05") + " UTC"
		want := utc // only a script knows the time zone
		if v.JavaScript {
			want = at.In(time.FixedZone("IST", 5*3600+1800)).Format("2 Jan 2006, 15:04")
		}
		if shown != want || hover != utc {
			t.Errorf("the sign-in is at %q, on hover %q, want %q and %q", shown, hover, want, utc)
		}
		day, clock := at.Format("2 Jan 2006")+" UTC", at.Format("15:04:05")+" UTC"
		if v.JavaScript {
			day, clock, _ = strings.Cut(want, ", ")
		}
		activity := pages.OpenActivity(v.Tab)
		activity.Expect("heading", day)
		activity.ExpectInOrder(`signed in .*` + clock)
		account = activity.FollowToAccount()
		account.ExpectSessions(3)
		account.Sessions().Row("Safari on iPhone").Click("End session")
		account.ExpectStatus(`Session ended`)
		account.ExpectSessions(2)
		phone.Open("/api-keys")
		pages.ExpectLogin(phone.Tab)
		account.Click("End all other sessions")
		account.Click("Confirm sign-out")
		account.ExpectStatus(`been signed out everywhere else`)
		account.ExpectSessions(1)
		c.Get("/agents").Is(http.StatusSeeOther)
	})
}

func TestPasswordAndEmailAreChanged(t *testing.T) {
	t.Parallel()
	mails := mailertest.Start(t)
	p := ownPortal(t, settings{extra: mailSettings(mails.URL())})
	for name, mode := range map[string]profile{"with JavaScript": withJavaScript, "without JavaScript": withoutJavaScript} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, v := startSignedIn(t, p, mode)
			v.allowStatus(http.StatusUnprocessableEntity, http.StatusGone)
			account := pages.OpenAccount(v.Tab)
			password, former := "a much longer battery staple", c.email
			if v.JavaScript { // a password is shown until it is sent
				account.Fill("Current password", "not the password")
				account.Click("Show current password")
				account.ExpectAttribute("textbox", "Current password", "type", "text")
			}
			account.ChangePassword("not the password", password)
			account.ExpectAlert(`current password is incorrect`)
			account.ExpectAttribute("textbox", "Current password", "type", "password")
			account.ChangePassword(c.password, password)
			account.ExpectStatus(`Password changed`)
			account.ExpectNoAlert()
			c.password = password

			account.OpenEmailForm()
			account.ChangeEmail("new-"+former, "not the password")
			account.ExpectAlert(`password is incorrect`)
			c.email = "new-" + former
			account.ChangeEmail(c.email, c.password)
			account.ExpectStatus(`Open the link`)
			account.ExpectNoAlert()
			link := mailedPath(t, mails, p.URL, c.email, "Confirm your new email")
			account.SignOut()
			pages.ConfirmEmail(v.Tab, link)
			v.Open(link)
			v.ExpectAlert(`already been used`)
			c.signIn(v.Tab)

			c.newAgent(t, "Front desk")
			activity := pages.OpenActivity(v.Tab)
			activity.ExpectInOrder(`created the agent Front desk`, `changed the email of `+former+` to `+c.email)
			activity.Filter("New agents")
			if entries := activity.Entries(); len(entries) != 1 {
				t.Errorf("got %d entries, want 1: %q", len(entries), entries)
			}
			if export := readFile(t, activity.Export()); !strings.Contains(export, "Front desk") {
				t.Errorf("the export holds %q", export)
			}
			activity.Search("no such label")
			activity.ExpectText("No matching activity")
			activity.Search("front")
			activity.ExpectInOrder(`created the agent Front desk`)
		})
	}
}

func TestAPersonIsInvitedJoinsAndIsRemoved(t *testing.T) {
	inBothModes(t, func(t *testing.T, p *process, mode profile) {
		c, v := startSignedIn(t, p, mode, withClipboard)
		v.allowStatus(http.StatusConflict, http.StatusUnprocessableEntity)
		people := pages.OpenPeople(v.Tab)
		people.ExpectCurrent("People")
		email, cancelled := "colleague-of-"+c.email, "cancelled-by-"+c.email
		guest := visit(t, c.URL, mode)
		guest.allowStatus(http.StatusGone, http.StatusUnprocessableEntity, http.StatusForbidden)

		reveal := people.Invite(cancelled, "Owner")
		if v.JavaScript {
			if got := v.copied(func() {
				reveal.Dialog.Click("Copy link")
				reveal.ExpectCopied()
			}); got != reveal.Secret() {
				t.Errorf("the clipboard holds %q, not the link", got)
			}
		}
		link := reveal.Secret()
		reveal.Done()
		people.Row(cancelled).Click("Cancel invitation")
		people.ExpectStatus(`was cancelled`)
		people.Row(cancelled).ExpectGone()
		guest.Open(strings.TrimPrefix(link, c.URL))
		guest.ExpectAlert(`cancelled`)

		reveal = people.Invite(email, "Member")
		link = reveal.Secret()
		reveal.Leave()
		people.Row(email).Expect("cell", "Invited")
		v.ExpectNowhere(link)
		people.Submit(email, "Owner")
		people.ExpectAlert(`already been invited`)
		if got := people.Value("Email"); got != email {
			t.Errorf("the field holds %q, want the input", got)
		}
		pages.Join(guest.Tab, link, c.Name)
		pages.SubmitJoin(guest.Tab, "short")
		guest.ExpectAlert(`12`)
		pages.SubmitJoin(guest.Tab, c.password)
		pages.ExpectKeys(guest.Tab).Add("of the colleague")
		pages.OpenPeople(guest.Tab).ExpectNo("button", "Invite")
		guest.ExpectNo("button", "Remove")

		people = pages.OpenPeople(v.Tab)
		people.Row(email).Click("Make owner")
		people.Row(email).Click("Confirm owner")
		people.ExpectStatus(`is now an owner`)
		people.Row(email).Click("Make member")
		people.Row(email).ExpectFocus("button", "Cancel")
		people.Row(email).Click("Confirm member")
		people.Row(email).Expect("cell", "Member")
		people.Row(email).Click("Remove")
		people.Row(email).Click("Cancel")
		if v.JavaScript {
			people.Row(email).ExpectFocus("button", "Remove")
		}
		people.Remove(email)
		people.ExpectStatus(`was removed`)
		people.Row(email).ExpectGone()
		people.ExpectText(`of the colleague nas_\.\.\.`)
		guest.Open("/people")
		pages.ExpectLogin(guest.Tab)
		guest.Open(strings.TrimPrefix(link, c.URL))
		guest.ExpectAlert(`no longer valid`)

		people = pages.OpenPeople(v.Tab)
		people.Row(c.email).ExpectAttribute("button", "Make member", "disabled", "")
		people.Row(c.email).ExpectAttribute("button", "Remove", "disabled", "")
		people.Row(c.email).ExpectText(`The last owner who can sign in`)
	})
}

// In Cairo the 24th of April begins at 1:00, when summer time begins.
func TestDaysThatBeginWithSummerTime(t *testing.T) {
	t.Parallel()
	_, v := startSignedIn(t, sharedPortal(t), func(o *options) { o.TimezoneId = playwright.String("Africa/Cairo") })
	pages.OpenActivity(v.Tab)
	for query, want := range map[string]string{"from=2026-04-24": "120", "to=2026-04-23": "120", "from=2026-04-25": "180", "to=2026-04-24": "180"} {
		name, day, _ := strings.Cut(query, "=")
		got := v.Evaluate(fmt.Sprintf(`() => {
			const [name, day] = [%q, %q]
			const field = document.querySelector("#activity-" + name)
			field.value = day
			field.dispatchEvent(new Event("change"))
			return document.querySelector("[data-offset-of=activity-" + name + "]").value
		}`, name, day))
		if got != want {
			t.Errorf("%s: the offset is %v minutes, want %s", query, got, want)
		}
	}
}

func inIndia(o *options) {
	o.TimezoneId = playwright.String("Asia/Kolkata")
}

func asPhone(o *options) {
	o.UserAgent = playwright.String("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 " +
		"(KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1")
}
