package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
	"portal/models/modelstest"
)

func TestAnInvalidLabelStaysInTheField(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		_, v, keys := startSignedIn(t, sharedPortal(t), mode)
		v.allowStatus(http.StatusUnprocessableEntity)
		tooLong := strings.Repeat("long ", 20) + "!"

		keys.Submit(tooLong)
		keys.ExpectLabelExplained()
		if keys.Label() != tooLong {
			t.Errorf("the field holds %q, want the input", keys.Label())
		}
		if n := v.count(http.MethodPost, "/api-keys", http.StatusUnprocessableEntity); n != 1 {
			t.Errorf("%d responses were 422, want one", n)
		}
		keys.ExpectNone()

		keys.Submit("   ")
		keys.ExpectAlertSaying("Enter a label")

		keys.Add("short enough")
		keys.ExpectNoAlert()
		if keys.Label() != "" {
			t.Errorf("after success the field still holds %q", keys.Label())
		}
	})
}

// Users paste whole documents by mistake.
func TestALabelOfAnyLengthStaysInTheField(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		_, v, keys := startSignedIn(t, sharedPortal(t), mode)
		v.allowStatus(http.StatusUnprocessableEntity)
		pasted := strings.Repeat("long ", 10<<10) + "!"

		keys.Submit(pasted)
		keys.ExpectLabelExplained()
		if keys.Label() != pasted {
			t.Errorf("the field holds %d of %d characters", len(keys.Label()), len(pasted))
		}
	})
}

func TestALabelIsShownAsEntered(t *testing.T) {
	t.Parallel()
	_, _, keys := startSignedIn(t, sharedPortal(t))
	for _, label := range []string{`<img src=x onerror=alert(1)> & "quotes"`, "Produktion – Zürich 🚀", strings.Repeat("W", 100)} {
		keys.Add(label)
		keys.Row(label).ExpectText("Label", label)
	}
}

func TestKeysMayShareALabel(t *testing.T) {
	t.Parallel()
	_, _, keys := startSignedIn(t, sharedPortal(t))
	first, second := keys.Add("same"), keys.Add("same")
	if first == second {
		t.Error("two forms returned the same key")
	}
	if n := keys.Count(); n != 2 {
		t.Errorf("the list holds %d keys, want both", n)
	}
}

func TestADoubleClickMakesOneKey(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		_, v, keys := startSignedIn(t, sharedPortal(t), mode)
		v.allowStatus(http.StatusConflict)
		keys.Type("once")
		keys.PressGenerateTwice()
		if !v.JavaScript {
			// The browser may show the response to either click: the key, or the alert
			// that it exists.
			v.ExpectTextSaying(`API key generated|nas_\.\.\.`)
		} else {
			// The second click is not sent.
			pages.ExpectReveal(v.Tab).Abandon()
			if n := v.count(http.MethodPost, "/api-keys", http.StatusConflict); n != 0 {
				t.Errorf("%d repeated forms were sent", n)
			}
		}
		keys = pages.OpenKeys(v.Tab)
		keys.ExpectListed("once")
		if n := keys.Count(); n != 1 {
			t.Errorf("a double click made %d keys", n)
		}
	})
}

// Reloading the page that shows a key sends its form again. It must not create or show a key.
func TestARepeatedFormSaysThatTheKeyExists(t *testing.T) {
	t.Parallel()
	_, v, keys := startSignedIn(t, sharedPortal(t), withoutJavaScript)
	v.allowStatus(http.StatusConflict)
	secret := keys.Generate("only one").Key()

	v.Reload()
	expectKeyExistsAlert(t, v, "only one", secret)
	if n := pages.OpenKeys(v.Tab).Count(); n != 1 {
		t.Errorf("the repeated form made %d keys", n)
	}
}

// The server creates the key, but the response is lost. A retry must not create another key, and
// cannot show the value of the first.
func TestARetryAfterALostResponseSaysThatTheKeyExists(t *testing.T) {
	t.Parallel()
	_, v, keys := startSignedIn(t, sharedPortal(t))
	v.allowStatus(http.StatusConflict)
	v.allow("net::ERR_FAILED|Failed to fetch")
	v.dropResponses(t, "/api-keys")

	keys.Submit("lost")
	keys.ExpectAlertSaying(`(?i)again`)
	if keys.Label() != "lost" {
		t.Errorf("the field holds %q, want the input", keys.Label())
	}
	v.deliverResponses(t)
	keys.PressGenerate()
	expectKeyExistsAlert(t, v, "lost", "")

	keys.RevokeFromAlert("lost").Confirm()
	keys.ExpectStatusSaying(`(?i)revoked`)
	keys.ExpectNone() // the retry created no second key
}

func TestTheKeyLimitIsExplained(t *testing.T) {
	t.Parallel()
	c, v, _ := startSignedIn(t, sharedPortal(t))
	v.allow(`status of 4\d\d`)
	c.generate(t, v.cookies(t), "key 042")
	modelstest.Keys(t, c.at.settings.databaseURL, uuid.MustParse(c.accountID), 98)
	keys := pages.OpenKeys(v.Tab)
	keys.Add("the hundredth")
	keys.Submit("one too many")
	keys.ExpectAlertSaying(`(?i)revoke`)
	if keys.Label() != "one too many" {
		t.Errorf("the field holds %q, want the input", keys.Label())
	}
	keys.Row("key 042").Revoke().Confirm()
	keys.ExpectNotListed("key 042")
	keys.PressGenerate()
	pages.ExpectReveal(v.Tab).Abandon()
	keys.ExpectListed("one too many")
}

// expectKeyExistsAlert waits for the response to a repeated form: an alert with the label and the
// masked key. A non-empty secret must not be on the page.
func expectKeyExistsAlert(t *testing.T, v *visitor, label, secret string) {
	t.Helper()
	alert := v.ExpectAlertSaying(`nas_\.\.\.`)
	if !strings.Contains(alert, label) {
		t.Errorf("the alert does not name the key's label: %q", alert)
	}
	if n := v.count(http.MethodPost, "/api-keys", http.StatusConflict); n != 1 {
		t.Errorf("%d responses were 409, want one", n)
	}
	if secret != "" {
		v.ExpectNowhere(secret)
		if !strings.Contains(alert, "nas_..."+secret[len(secret)-4:]) {
			t.Errorf("the alert does not name the masked key: %q", alert)
		}
	}
}

// dropResponses lets forms to path reach the server and drops the responses.
func (v *visitor) dropResponses(t *testing.T, path string) {
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
		t.Fatalf("drop the responses: %v", err)
	}
}

func (v *visitor) deliverResponses(t *testing.T) {
	t.Helper()
	if err := v.Page.UnrouteAll(); err != nil {
		t.Fatalf("deliver the responses: %v", err)
	}
}
