package e2e

import (
	"net/http"
	"testing"

	"portal/e2e/pages"
)

// A replacement is shown once, like any other key. Over HTTPS browsers cache whole pages for going
// back.
func TestGoingBackNeverShowsAReplacementAgainOverHTTPS(t *testing.T) {
	t.Parallel()
	p, site := portalBehindTLS(t)
	inBothModes(t, func(t *testing.T, mode profile) {
		v := visit(t, site, mode, trustingAnyCertificate)
		v.allowStatus(http.StatusConflict)
		c := p.newCustomer(t)
		keys := c.signIn(v.Tab)
		keys.Add("production")
		rotation := pages.OpenKeys(v.Tab).Row("production").Rotate()
		reveal := rotation.Replace()
		secret := reveal.Key()
		reveal.Leave()
		pages.ExpectRotation(v.Tab)
		v.ExpectNowhere(secret)
		for _, move := range []func(){v.Back, v.Forward, v.Back, v.Reload} {
			move()
			v.ExpectNowhere(secret)
		}
	})
}
