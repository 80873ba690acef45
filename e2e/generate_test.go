package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
)

func TestALabelThatBreaksTheRulesIsKeptForCorrection(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		_, v, keys := arrive(t, sharedPortal(t), mode)
		v.allowStatus(http.StatusUnprocessableEntity)
		tooLong := strings.Repeat("long ", 20) + "!"

		keys.Submit(tooLong)
		keys.ExpectLabelExplained()
		if keys.Label() != tooLong {
			t.Errorf("the field holds %q instead of what was typed", keys.Label())
		}
		if n := v.count(http.MethodPost, "/api-keys", http.StatusUnprocessableEntity); n != 1 {
			t.Errorf("%d answers were 422, want one", n)
		}
		keys.ExpectNone()

		keys.Submit("   ")
		keys.ExpectAlert()

		keys.Add("short enough")
		keys.ExpectNoAlert()
		if keys.Label() != "" {
			t.Errorf("after success the field still holds %q", keys.Label())
		}
	})
}

// Whole documents get pasted by mistake.
func TestALabelOfAnyLengthIsKeptForCorrection(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		_, v, keys := arrive(t, sharedPortal(t), mode)
		v.allowStatus(http.StatusUnprocessableEntity)
		pasted := strings.Repeat("long ", 10<<10) + "!"

		keys.Submit(pasted)
		keys.ExpectLabelExplained()
		if keys.Label() != pasted {
			t.Errorf("the field holds %d of %d characters", len(keys.Label()), len(pasted))
		}
	})
}

func TestALabelIsShownAsItWasTyped(t *testing.T) {
	t.Parallel()
	_, _, keys := arrive(t, sharedPortal(t))
	for _, label := range []string{`<img src=x onerror=alert(1)> & "quotes"`, "Produktion – Zürich 🚀", strings.Repeat("W", 100)} {
		keys.Add(label)
		keys.Row(label).ExpectText("Label", label)
	}
}

func TestKeysMayShareALabel(t *testing.T) {
	t.Parallel()
	_, _, keys := arrive(t, sharedPortal(t))
	first, second := keys.Add("same"), keys.Add("same")
	if first == second {
		t.Error("two keys are one")
	}
	if n := keys.Count(); n != 2 {
		t.Errorf("the list holds %d keys, want both", n)
	}
}

func TestADoubleClickMakesOneKey(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		_, v, keys := arrive(t, sharedPortal(t), mode)
		v.allowStatus(http.StatusConflict)
		keys.Type("once")
		keys.PressGenerateTwice()
		if !v.JavaScript {
			// The second click overtakes the first: what comes is the key or the word that it was made.
			v.ExpectTextSaying(`API key generated|nas_\.\.\.`)
		} else {
			// The second click is not even sent: the customer sees the key.
			pages.ExpectReveal(v.Tab).Abandon()
			if n := v.count(http.MethodPost, "/api-keys", http.StatusConflict); n != 0 {
				t.Errorf("%d clicks too many were sent", n)
			}
		}
		keys = pages.OpenKeys(v.Tab)
		keys.ExpectListed("once")
		if n := keys.Count(); n != 1 {
			t.Errorf("a double click made %d keys", n)
		}
	})
}

// Reloading the page that shows a key sends its form again, which makes nothing and shows nothing.
func TestARepeatedFormIsToldThatItHasMadeTheKey(t *testing.T) {
	t.Parallel()
	_, v, keys := arrive(t, sharedPortal(t), withoutJavaScript)
	v.allowStatus(http.StatusConflict)
	secret := keys.Generate("only one").Key()

	v.Reload()
	expectRepeatTold(t, v, "only one", secret)
	if n := pages.OpenKeys(v.Tab).Count(); n != 1 {
		t.Errorf("the repeated form made %d keys", n)
	}
}

// The key is made, but its answer never arrives: trying again must neither make another nor pretend to know the value.
func TestAnAnswerLostOnTheWayIsToldAtTheNextTry(t *testing.T) {
	t.Parallel()
	_, v, keys := arrive(t, sharedPortal(t))
	v.allowStatus(http.StatusConflict)
	v.allow("net::ERR_FAILED|Failed to fetch")
	v.loseAnswers(t, "/api-keys")

	keys.Submit("lost")
	keys.ExpectAlertSaying(`(?i)again`)
	if keys.Label() != "lost" {
		t.Errorf("the field holds %q instead of what was typed", keys.Label())
	}
	v.deliverAnswers(t)
	keys.PressGenerate()
	expectRepeatTold(t, v, "lost", "")

	keys.RevokeRepeated("lost").Confirm()
	keys.ExpectStatusSaying(`(?i)revoked`)
	keys.ExpectNone() // trying again made no second key
}

func TestTheMostKeysAnAccountMayHaveAreSaid(t *testing.T) {
	t.Parallel()
	_, v, _ := arrive(t, sharedPortal(t))
	v.allow(`status of 4\d\d`)
	cookies := v.cookies(t)
	for n := range 99 {
		form := url.Values{"label": {"key " + pad(int64(n))}, "form_id": {uuid.NewString()}}
		if status, _ := postForm(t, v.Site+"/api-keys", form, cookies); status != http.StatusOK {
			t.Fatalf("making a key by HTTP answered %d", status)
		}
	}
	keys := pages.OpenKeys(v.Tab)
	keys.Add("the hundredth")
	keys.Submit("one too many")
	keys.ExpectAlertSaying(`(?i)revoke`)
	if keys.Label() != "one too many" {
		t.Errorf("the field holds %q instead of what was typed", keys.Label())
	}
	keys.Row("key 042").Revoke().Confirm()
	keys.ExpectNotListed("key 042")
	keys.PressGenerate()
	pages.ExpectReveal(v.Tab).Abandon()
	keys.ExpectListed("one too many")
}

// expectRepeatTold waits for the answer to a repeated form. The secret, when the test knows it, must not be there.
func expectRepeatTold(t *testing.T, v *visitor, label, secret string) {
	t.Helper()
	alert := v.ExpectAlertSaying(`nas_\.\.\.`)
	if !strings.Contains(alert, label) {
		t.Errorf("the alert does not name the key's label: %q", alert)
	}
	if n := v.count(http.MethodPost, "/api-keys", http.StatusConflict); n != 1 {
		t.Errorf("%d answers were 409, want one", n)
	}
	if secret != "" {
		v.ExpectNowhere(secret)
		if !strings.Contains(alert, "nas_..."+secret[len(secret)-4:]) {
			t.Errorf("the alert does not name the masked key: %q", alert)
		}
	}
}

// loseAnswers lets forms reach the server, and loses what it says to them.
func (v *visitor) loseAnswers(t *testing.T, path string) {
	t.Helper()
	err := v.Page.Route(v.Site+path, func(route playwright.Route) {
		if route.Request().Method() != http.MethodPost {
			_ = route.Continue()
			return
		}
		_, _ = route.Fetch()
		_ = route.Abort()
	})
	if err != nil {
		t.Fatalf("stand in the way: %v", err)
	}
}

func (v *visitor) deliverAnswers(t *testing.T) {
	t.Helper()
	if err := v.Page.UnrouteAll(); err != nil {
		t.Fatalf("get out of the way: %v", err)
	}
}
