package portal_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestExamplesAreFilledIn(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		page := c.get("/integrate").is(http.StatusOK)
		page.one("heading", "Integrate")
		page.says("You have no agents yet", "AGENT_ID", "paste the key and press Enter. The key is not displayed",
			"The Go, Node and Python servers have no dependencies", "guides and the API reference")
		if page.one("link", "Integrate").attr("aria-current") != "page" {
			t.Error("the navigation does not mark the page")
		}

		second := c.agent("Night shift")
		c.get("/integrate").says("use your agent Night shift", second.ID.String())
		first := c.agent("Front desk")
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			page := v.get("/integrate").is(http.StatusOK)
			for _, name := range []string{"curl", "Go", "Node", "Python"} {
				page.one("button", "Copy "+name+" example")
				page.one("region", name+" example").says("http://portal.test/api/widget/token",
					first.ID.String(), "NAS_API_KEY")
			}
			browser := page.one("region", "Browser example")
			if strings.Contains(browser.text(), "NAS_API_KEY") || strings.Contains(browser.text(), "portal.test") {
				t.Error("the browser side knows the key or asks the portal")
			}
			other := v.get("/integrate?agent=" + second.ID.String()).is(http.StatusOK)
			other.one("region", "Go example").says(second.ID.String())
			for _, id := range []string{uuid.NewString(), "nonsense", ""} {
				v.get("/integrate?agent=" + id).is(http.StatusNotFound)
			}
		})
	})
}
