package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"portal/e2e/pages"
)

var wholeKey = regexp.MustCompile(`^nas_[0-9A-Za-z]{36}$`)

// The whole life of a key: generate, use, revoke.
func TestACustomerGeneratesUsesAndRevokesAKey(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, p *process) {
		inBothModes(t, func(t *testing.T, mode profile) {
			c := p.newCustomer(t)
			agentID := c.newAgent(t, "Front desk")
			v := visit(t, p.URL, mode, withClipboard)

			keys := signInOnTheWayToActivity(v, c)
			keys.ExpectNone()

			reveal := keys.Generate("production")
			secret := reveal.Key()
			if !wholeKey.MatchString(secret) {
				t.Fatalf("the revealed key is %q", secret)
			}
			reveal.ExpectReadOnly()
			if n := v.Occurrences(secret); n != 1 {
				t.Errorf("the page contains the key %d times, want once", n)
			}
			copyAndClose(t, v, reveal, secret)

			keys.ExpectColumns()
			row := keys.Row("production")
			row.ExpectText("Label", "production")
			row.ExpectText("Key", "nas_..."+secret[len(secret)-4:])
			row.ExpectText("Last Used", "Never")
			v.ExpectNowhere(secret)

			server := backend{site: p.URL, key: secret}
			server.expectServed(t, agentID)
			keys = pages.OpenKeys(v.Tab)
			keys.Row("production").ExpectUsed()

			confirmation := keys.Row("production").Revoke()
			confirmation.ExpectWarning()
			confirmation.ExpectFocusOnCancel()
			confirmation.Cancel()
			server.expectServed(t, agentID)
			keys.Row("production").Revoke().Confirm()
			keys.ExpectStatusSaying(`(?i)revoked`)
			keys.ExpectNone()
			server.expectRefused(t, agentID)

			pages.OpenActivity(v.Tab).ExpectInOrder(`(?i)revoked.*production|production.*revoked`, `(?i)generated.*production|production.*generated`)
			pages.OpenKeys(v.Tab).SignOut()
			v.Open("/api-keys")
			pages.ExpectLogin(v.Tab)

			if strings.Contains(p.log.String(), secret[4:]) {
				t.Error("the portal's log contains the key")
			}
		})
	})
}

// signInOnTheWayToActivity opens the Activity page without a session, fails to sign in once, signs
// in and checks that the portal returns to the Activity page.
func signInOnTheWayToActivity(v *visitor, c customer) pages.Keys {
	v.Open("/activity")
	login := pages.ExpectLogin(v.Tab)
	v.allowStatus(http.StatusUnauthorized, http.StatusUnprocessableEntity)
	login.SignIn(c.email, "not "+c.password)
	login.ExpectAlert()
	login.SignIn(c.email, c.password)
	v.ExpectPath("/activity")
	frame := pages.Frame{Tab: v.Tab}
	frame.ExpectCurrent("Activity")
	frame.Follow("Agents")
	frame.Follow("API Keys")
	return pages.ExpectKeys(v.Tab)
}

// copyAndClose copies the key with its button, which needs JavaScript, and closes the reveal.
func copyAndClose(t *testing.T, v *visitor, reveal pages.Reveal, secret string) {
	t.Helper()
	if v.JavaScript {
		clipboard.Lock()
		reveal.Copy()
		reveal.ExpectCopied()
		copied := v.Clipboard()
		clipboard.Unlock()
		if copied != secret {
			t.Errorf("the clipboard holds %q, want the key", copied)
		}
	}
	reveal.Done()
	reveal.ExpectClosed()
}
