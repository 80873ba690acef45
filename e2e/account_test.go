package e2e

import (
	"encoding/csv"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
)

func TestSessionsAreListedAndEnded(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, p *process) {
		inBothModes(t, func(t *testing.T, mode profile) {
			c, v, keys := startSignedIn(t, p, mode)
			phone := visit(t, p.URL, asPhone)
			c.signIn(phone.Tab)
			third := visit(t, p.URL)
			c.signIn(third.Tab)

			account := keys.FollowToAccount()
			account.ExpectSessions(3)
			account.EndSession("Safari on iPhone")
			account.ExpectStatusSaying(`Session ended`)
			account.ExpectSessions(2)
			phone.Open("/api-keys")
			pages.ExpectLogin(phone.Tab)

			account.EndAllOthers()
			account.ExpectStatusSaying(`Signed out of all other sessions`)
			account.ExpectSessions(1)
			third.Open("/agents")
			pages.ExpectLogin(third.Tab)
			pages.OpenActivity(v.Tab).ExpectInOrder(`ended another session of Safari on iPhone`)
		})
	})
}

func TestThePasswordIsChanged(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, v, keys := startSignedIn(t, sharedPortal(t), mode)
		v.allowStatus(http.StatusUnprocessableEntity)
		account := keys.FollowToAccount()
		account.ChangePassword("not the password", "a much longer battery staple")
		account.ExpectAlertSaying(`current password is incorrect`)
		account.ChangePassword(c.password, "short")
		account.ExpectAlertSaying(`12`)
		account.ChangePassword(c.password, "a much longer battery staple")
		account.ExpectStatusSaying(`Password changed`)
		account.ExpectNoAlert()
		c.password = "a much longer battery staple"
		account.SignOut()
		c.signIn(v.Tab)
	})
}

func TestTheEmailIsChanged(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, v, keys := startSignedIn(t, sharedPortal(t), mode)
		v.allowStatus(http.StatusUnprocessableEntity)
		former := c.email
		account := keys.FollowToAccount()
		account.OpenEmailForm()
		account.ChangeEmail("new-"+former, "not the password")
		account.ExpectAlertSaying(`password is incorrect`)
		account.ChangeEmail("not an email", c.password)
		account.ExpectAlertSaying(`name@example.com`)
		c.email = "new-" + former
		account.ChangeEmail(c.email, c.password)
		account.ExpectStatusSaying(`Email changed`)
		account.ExpectNoAlert()
		pages.OpenActivity(v.Tab).ExpectInOrder(`changed the email of ` + former + ` to ` + c.email)
		pages.OpenAccount(v.Tab).SignOut()
		c.signIn(v.Tab)
	})
}

func TestAPasswordIsShownUntilItIsSent(t *testing.T) {
	t.Parallel()
	_, v, keys := startSignedIn(t, sharedPortal(t))
	v.allowStatus(http.StatusUnprocessableEntity)
	account := keys.FollowToAccount()
	account.EnterCurrentPassword("a password to read")
	account.ExpectCurrentPasswordShown(false)
	account.ToggleCurrentPassword()
	account.ExpectCurrentPasswordShown(true)
	account.ToggleCurrentPassword()
	account.ExpectCurrentPasswordShown(false)
	account.ToggleCurrentPassword()
	account.ChangePassword("a password to read", "a much longer battery staple")
	account.ExpectAlertSaying(`current password is incorrect`)
	account.ExpectCurrentPasswordShown(false)
}

func TestTimesAreLocalAndShowUTCOnHover(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		_, v, keys := startSignedIn(t, sharedPortal(t), mode, inIndia)
		shown, hover, at := keys.FollowToAccount().SignedInAt()
		utc := at.Format("2 Jan 2006, 15:04:05") + " UTC"
		want := utc // only a script knows the time zone
		if v.JavaScript {
			want = at.In(time.FixedZone("IST", 5*3600+1800)).Format("2 Jan 2006, 15:04")
		}
		if shown != want || hover != utc {
			t.Errorf("the sign-in is at %q, on hover %q, want %q and %q", shown, hover, want, utc)
		}
	})
}

func inIndia(o *playwright.BrowserNewContextOptions) {
	o.TimezoneId = playwright.String("Asia/Kolkata")
}

func TestActivityIsFilteredAndExported(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, v, keys := startSignedIn(t, sharedPortal(t), mode)
		c.newAgent(t, "=Front desk")
		keys.Follow("Activity")
		activity := pages.OpenActivity(v.Tab)
		activity.Filter("New agents")
		if entries := activity.Entries(); len(entries) != 1 {
			t.Errorf("got %d entries, want 1: %q", len(entries), entries)
		}
		file, err := os.Open(activity.Export())
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		lines, err := csv.NewReader(file).ReadAll()
		if err != nil || len(lines) != 2 || lines[1][3] != "'=Front desk" {
			t.Errorf("the export holds %q, error %v", lines, err)
		}
		activity.Filter("Everything")
		activity.ExpectInOrder(`created the agent =Front desk`, `signed in`)
	})
}

// Without JavaScript the browser sends both clicks of a double click.
func TestADoubleClickMakesOneAgent(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		_, v, _ := startSignedIn(t, sharedPortal(t), mode)
		pages.OpenAgents(v.Tab).CreateByDoubleClick("Front desk")
		v.ExpectStatusSaying(`“Front desk” was created`)
		pages.OpenAgents(v.Tab).ExpectCount(1)
	})
}

func TestAccountIntegrateAndActivityAreAccessibleAndFit(t *testing.T) {
	t.Parallel()
	c, v, _ := startSignedIn(t, sharedPortal(t), withoutMotion)
	v.allowStatus(http.StatusUnprocessableEntity)
	i := inspect(t, v.Tab)

	pages.OpenAccount(v.Tab)
	i.check(t, "one session")
	other := visit(t, c.at.URL, asPhone)
	c.signIn(other.Tab)
	account := pages.OpenAccount(v.Tab)
	account.ExpectSessions(2)
	i.check(t, "two sessions")
	account.ChangePassword("wrong", "a much longer battery staple")
	account.ExpectAlert()
	i.check(t, "a current password refused")
	account.ChangePassword(c.password, "short")
	account.ExpectAlert()
	i.check(t, "a new password refused")
	account.EndSession("iPhone")
	account.ExpectStatusSaying(`ended`)
	i.check(t, "a session ended")

	pages.OpenIntegrate(v.Tab)
	i.check(t, "examples without an agent")
	c.newAgent(t, "Front desk")
	c.newAgent(t, "Night shift")
	pages.OpenIntegrate(v.Tab).Choose("Go")
	i.check(t, "examples")

	activity := pages.OpenActivity(v.Tab)
	activity.Filter("Renamed keys")
	activity.ExpectTextSaying("No matching activity")
	i.check(t, "no activity of a kind")
}

func asPhone(o *playwright.BrowserNewContextOptions) {
	o.UserAgent = playwright.String("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 " +
		"(KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1")
}
