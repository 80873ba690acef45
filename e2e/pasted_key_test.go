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
	c, v, keys := startSignedIn(t, sharedPortal(t))
	secret := keys.Add("found in a log")
	cookies := v.cookies(t)
	for range 11 {
		c.generate(t, cookies, "another")
	}
	keys = pages.OpenKeys(v.Tab)
	sent := recordRequests(v)

	for _, text := range []string{secret, "NAS_API_KEY=" + secret + " # production"} {
		keys.Filter(text)
		keys.ExpectAlertSaying(`This looks like a whole key`)
		keys.ExpectLabels("found in a log")
	}
	v.ExpectNowhere(secret)
	keys.SortBy("Label", "ascending")
	keys.ExpectLabels("found in a log")
	keys.Row("found in a log").Revoke().Confirm()
	keys.ExpectStatusSaying(`was revoked`)
	keys.ExpectNotListed("found in a log")
	keys.ExpectNoAlert()
	keys.ExpectOneEmptyBox()
	for _, request := range sent() {
		if strings.Contains(request, secret[:12]) || strings.Contains(request, "filter") {
			t.Errorf("the filter was sent: %s", request)
		}
	}
}

// recordRequests returns a function that returns the URLs and bodies of all requests so far and the
// page's address.
func recordRequests(v *visitor) func() []string {
	var mu sync.Mutex
	var sent []string
	v.Page.OnRequest(func(request playwright.Request) {
		body, _ := request.PostData()
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
