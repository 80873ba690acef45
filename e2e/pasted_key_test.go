package e2e

import (
	"strings"
	"sync"
	"testing"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
)

// A user who found a key pastes it into the filter. The key must not reach a URL, where the
// browser's history and the logs of proxies would keep it.
func TestAKeyPastedIntoTheFilterReachesNoURL(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, v, keys := startSignedIn(t, sharedPortal(t), mode)
		secret := keys.Add("found in a log")
		cookies := v.cookies(t)
		for range 10 {
			c.generate(t, cookies, "another")
		}
		keys = pages.OpenKeys(v.Tab)
		sent := recordRequests(v)

		for _, text := range []string{secret, "NAS_API_KEY=" + secret + " # production"} {
			keys.Filter(text)
			keys.ExpectAlertSaying(`This looks like a whole key`)
			keys.ExpectLabels("found in a log")
		}
		v.Reload()
		keys.ExpectLabels("found in a log")
		v.ExpectNowhere(secret)
		keys.Filter(secret[:12])
		keys.ExpectOneEmptyBox()
		partial := "nas_" + secret[len(secret)-4:]
		keys.Filter(partial)
		keys.SortBy("Label", "ascending")
		keys.ExpectLabels("found in a log")
		v.Reload()
		for _, request := range sent() {
			if strings.Contains(request, secret[:12]) || strings.Contains(request, partial) {
				t.Errorf("the key was sent: %s", request)
			}
		}
		keys.Filter(secret)
		keys.RevokeFound("found in a log").Confirm()
		keys.ExpectStatusSaying(`was revoked`)
		keys.ExpectNotListed("found in a log")
		keys.ExpectNoAlert()
	})
}

// recordRequests returns a function that returns the URLs of all requests so far and the page's
// address. With JavaScript it also returns the bodies.
func recordRequests(v *visitor) func() []string {
	var mu sync.Mutex
	var sent []string
	v.Page.OnRequest(func(request playwright.Request) {
		body := ""
		if v.JavaScript {
			body, _ = request.PostData()
		}
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, request.Method()+" "+request.URL()+" "+body)
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append(sent, v.Page.URL())
	}
}
