package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestAPastedKeyIsRedactedBeforeItReachesAURL(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key, secret := c.newKey("found", uuid.Nil)
		c.key("other")
		last := key.LastFour

		c.post("/api-keys/filter", url.Values{"filter": {" " + secret + "\n"}, "sort": {"label"}}).
			redirects("/api-keys?dir=asc&filter=" + last + "&sort=label&whole=yes")
		c.post("/api-keys/filter", url.Values{"filter": {secret[:20]}}).redirects("/api-keys?filter=" + secret[16:20])
		c.post("/api-keys/filter", url.Values{"filter": {"other"}}).redirects("/api-keys?filter=other")

		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			v.get("/api-keys?filter=" + secret).redirects("/api-keys?filter=" + last + "&whole=yes")
			v.get("/activity?before=" + secret).redirects("/activity?before=" + last)
			found := v.get("/api-keys?filter=" + last + "&whole=yes").is(http.StatusOK)
			found.one("alert", "This looks like a whole key").says("last four characters, " + last)
			if got := found.one("link", "Revoke this key").attr("href"); got != "/api-keys/"+key.ID.String()+"/revocation" {
				t.Errorf("the link leads to %s", got)
			}
			if got := labels(found); len(got) != 1 || got[0] != "found" {
				t.Errorf("shown are %q", got)
			}
			v.get("/api-keys?filter=0000&whole=yes").one("alert", "No active key of this account").none("link", "Revoke this key")
			v.get("/api-keys?filter="+last).none("alert", "whole key")
		})

		// A visitor without a session gets the page back after sign-in.
		location := s.visitor(t).get("/api-keys?filter=" + secret).header.Get("Location")
		if strings.Contains(location, secret[:12]) || !strings.HasPrefix(location, "/api-keys?filter="+last) {
			t.Errorf("a visitor is sent to %s", location)
		}
	})
}
