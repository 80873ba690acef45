package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"portal/e2e/pages"
	"portal/models/modelstest"
)

// delivered is a request that a receiver of webhooks has got.
type delivered struct {
	header http.Header
	body   []byte
}

// The whole life of an endpoint: add, test, resend, rotate, disable, remove. Its receiver verifies
// the requests with the secret of the page.
func TestAnOwnerAddsTestsAndRemovesAWebhook(t *testing.T) {
	t.Parallel()
	got := make(chan delivered, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- delivered{r.Header, body}
		_, _ = io.WriteString(w, "<b>thanks</b>")
	}))
	t.Cleanup(receiver.Close)
	p := ownPortal(t, settings{extra: []string{"PORTAL_WEBHOOK_NETWORKS=127.0.0.0/8"}})
	for _, mode := range []profile{withJavaScript, withoutJavaScript} {
		_, v := startSignedIn(t, p, mode, withClipboard)
		v.allowStatus(http.StatusUnprocessableEntity)
		expect := func(event string, secrets ...string) (id string) {
			t.Helper()
			select {
			case request := <-got:
				for _, secret := range secrets {
					if err := modelstest.Value(standard.NewWebhook(secret))(t).Verify(request.body, request.header); err != nil {
						t.Errorf("%s: %v", event, err)
					}
				}
				if !strings.Contains(string(request.body), `"type":"`+event+`"`) {
					t.Errorf("got %s, want %s", request.body, event)
				}
				return request.header.Get("webhook-id")
			case <-time.After(10 * time.Second):
				t.Fatalf("no request with %s", event)
				return ""
			}
		}

		hooks := pages.FollowToWebhooks(v.Tab)
		hooks.Add("https://10.0.0.1/", "People and sign-in")
		hooks.ExpectExplained("Endpoint URL")
		hooks.ExpectNo("checkbox", "Calls") // without LiveKit
		hooks.Add(receiver.URL, "People and sign-in")
		reveal := hooks.ExpectAdded()
		secret := reveal.Secret()
		if n := v.Occurrences(secret); n != 1 {
			t.Errorf("the page contains the secret %d times, want once", n)
		}
		if v.JavaScript {
			reveal.Done()
			reveal.ExpectGate()
			if copied := v.copied(func() {
				reveal.Dialog.Click("Copy secret")
				reveal.ExpectCopied()
			}); copied != secret {
				t.Errorf("the clipboard holds %q, want the secret", copied)
			}
		}
		reveal.Done()
		reveal.ExpectNo("textbox", "Signing secret")
		v.ExpectNowhere(secret)

		hook := pages.FollowToWebhooks(v.Tab).Endpoint(receiver.URL)
		hook.ExpectNo("table", "Deliveries")
		hook.Click("Send test event")
		id := expect("webhook.test", secret)
		hook.ExpectDelivery(`webhook\.test.*Delivered \(200\).*<b>thanks</b>`).Click("Resend")
		if again := expect("webhook.test", secret); again != id {
			t.Errorf("the event was resent as %s, want %s", again, id)
		}
		hook.ExpectDelivery(`webhook\.test.*Delivered`)

		rotation := hook.Rotate()
		rotated := rotation.Secret()
		rotation.Leave()
		v.ExpectNowhere(rotated)
		hook.Click("Send test event")
		expect("webhook.test", secret, rotated)

		hook.Confirm("Disable", "Confirm disabling")
		hook.ExpectNo("button", "Send test event")
		hook.Click("Enable")
		hook.Expect("button", "Disable")
		hook.Confirm("Remove", "Confirm removal")
		v.ExpectPath("/webhooks")
		hooks.ExpectNo("table", "Endpoints")
		pages.OpenActivity(v.Tab).ExpectInOrder(`removed the webhook `+receiver.URL, `enabled the webhook`, `disabled the webhook`, `replaced the secret of the webhook`, `added the webhook`)
	}
}
