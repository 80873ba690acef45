package portal_test

import (
	"net/http"
	"net/url"
	"testing"
)

func TestRepeatedAgentFormCreatesOneAgent(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			v := as.of(t, c.visitor)
			form := c.get("/agents").formID()
			fields := url.Values{"name": {"Front desk"}, "form_id": {form}}
			for range 2 {
				follow(v, v.post("/agents", fields)).says("“Front desk” was created")
			}
			if items := c.get("/agents").one("main", "").all("listitem", ""); len(items) != 1 {
				t.Errorf("%d agents are listed, want 1", len(items))
			}
			refused := v.post("/agents", url.Values{"name": {""}, "form_id": {form}}).is(http.StatusUnprocessableEntity)
			if refused.formID() == form {
				t.Error("the form that is sent back is the one that was sent")
			}
		})
	})
}
