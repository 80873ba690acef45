package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"portal/e2e/pages"
	"portal/handlers/mailer/mailertest"
)

// portalWithMail starts a portal that sends mails to a real SMTP server.
func portalWithMail(t *testing.T) (*process, *mailertest.Server) {
	t.Helper()
	server := mailertest.Start(t)
	return ownPortal(t, settings{extra: mailSettings(server.URL())}), server
}

func mailSettings(url string) []string {
	return []string{"PORTAL_SMTP_URL=" + url, "PORTAL_MAIL_FROM=portal@example.com"}
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

func TestAForgottenPasswordIsResetByEmail(t *testing.T) {
	t.Parallel()
	p, server := portalWithMail(t)
	inBothModes(t, func(t *testing.T, mode profile) {
		c := p.newCustomer(t)
		v := visit(t, p.URL, mode, withoutMotion)
		v.allowStatus(http.StatusUnprocessableEntity, http.StatusUnauthorized, http.StatusGone)
		check := func(state string) {
			if v.JavaScript {
				inspect(t, v.Tab).check(t, state)
			}
		}
		forgotten := pages.OpenLogin(v.Tab).ForgotPassword()
		check("a forgotten password")
		forgotten.Submit("no email")
		forgotten.ExpectAlertSaying(`Enter an email address`)
		check("an email refused")
		forgotten.Submit(c.email)
		forgotten.ExpectStatusSaying(`(?s)If there is an account.*` + regexp.QuoteMeta(c.email))
		check("a link requested")

		path := mailedPath(t, server, p.URL, c.email, "Set a new password")
		reset := pages.OpenPasswordReset(v.Tab, path)
		reset.Reload() // opening the page does not use the link
		check("a link to set a password")
		reset.Submit("short")
		reset.ExpectAlertSaying(`12`)
		check("a new password refused")
		old := c.password
		c.password = randomHex(12)
		reset.Submit(c.password)
		keys := pages.ExpectKeys(v.Tab)
		keys.SignOut()

		pages.OpenPasswordReset(v.Tab, path).ExpectAlert()
		check("a used link")
		login := pages.OpenLogin(v.Tab)
		login.SignIn(c.email, old)
		login.ExpectAlert()
		c.signIn(v.Tab)
	})
}

func TestAnInvitationArrivesByEmail(t *testing.T) {
	t.Parallel()
	p, server := portalWithMail(t)
	c, v, _ := startSignedIn(t, p, withoutMotion)
	email := "colleague-of-" + c.email
	invitation := pages.OpenPeople(v.Tab).Invite(email, "Member")
	invitation.ExpectTextSaying(`We have also sent it to ` + regexp.QuoteMeta(email))
	inspect(t, v.Tab).check(t, "an invitation that was sent")
	shown := invitation.Link()
	invitation.Done()

	guest := visit(t, p.URL)
	guest.allowStatus(http.StatusGone)
	path := mailedPath(t, server, p.URL, email, "Invitation to join "+c.account)
	if strings.HasSuffix(shown, path) {
		t.Error("the email has the link of the page")
	}
	pages.OpenJoin(guest.Tab, p.URL+path, c.account).Submit(c.password)
	pages.ExpectKeys(guest.Tab)
	guest.Open(strings.TrimPrefix(shown, p.URL))
	guest.ExpectAlertSaying(`already been used`)
}
