package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/models"
)

func TestFailedFormIsOfferedAgain(t *testing.T) {
	losingTheDatabase(t, func(t *testing.T, databaseURL string, end func()) {
		s := newSite(t, databaseURL, httpBase, models.Options{Timeout: models.Timeout})
		c := s.customer(t)
		key := "/api-keys/" + c.key("production").ID.String()
		formID := c.get("/api-keys").formID()
		end()

		for path, fields := range map[string]url.Values{
			"/api-keys":          generation("patient \"key\"", formID),
			"/agents":            {"name": {"Front desk"}, "form_id": {formID}},
			key + "/name":        {"name": {"staging"}},
			key + "/rotation":    {"form_id": {formID}},
			key + "/revocation":  nil,
			"/login":             {"email": {c.email}, "password": {password}, "next": {"/agents"}},
			"/account/password":  {"current_password": {password}, "new_password": {password + " 2"}},
			"/logout":            nil,
			"/agents?unexpected": {"unexpected": {"planted"}},
		} {
			away := c.post(path, fields).is(http.StatusServiceUnavailable)
			away.one("alert", "can’t reach its database").says("Try again")
			form, ok := away.byID(away.one("button", "Try again").attr("form"))
			if !ok || form.attr("method") != "post" || form.attr("action") != path {
				t.Errorf("%s: it is not offered again", path)
				continue
			}
			for name, values := range fields {
				field, ok := form.named(name)
				switch {
				case name == "unexpected":
					if ok {
						t.Errorf("%s: %s is repeated", path, name)
					}
				case !ok:
					t.Errorf("%s: %s is not offered again", path, name)
				case strings.HasSuffix(name, "password"):
					if field.attr("value") != "" || field.attr("type") != "password" {
						t.Errorf("%s: the field %s is %q of type %q", path, name, field.attr("value"), field.attr("type"))
					}
				case field.attr("value") != values[0]:
					t.Errorf("%s: %s is %q, want %q", path, name, field.attr("value"), values[0])
				}
			}
			if strings.Contains(away.body, password) {
				t.Errorf("%s: the response contains a password", path)
			}
		}
		c.post("/api-keys", generation("patient", formID)).one("textbox", "Label")
		c.post("/login", url.Values{"email": {c.email}, "password": {password}}).one("textbox", "Email")
		c.get("/api-keys").is(http.StatusServiceUnavailable).one("link", "Try again")
	})
}

func TestRetryGeneratesOneKey(t *testing.T) {
	onSiteWith(t, models.Options{Timeout: models.Timeout}, func(t *testing.T, s *site) {
		c := s.customer(t)
		formID := c.get("/api-keys").formID()

		release := holdKeys(t, s.databaseURL)
		away := c.post("/api-keys", generation("patient", formID)).is(http.StatusServiceUnavailable)
		release()
		again := generation(away.one("textbox", "Label").attr("value"), away.formID())
		c.post("/api-keys", again).is(http.StatusOK).one("heading", "API key generated")
		c.post("/api-keys", again).is(http.StatusConflict).one("alert", "already created the key")
		keys := c.keys()
		if len(keys) != 1 || keys[0].Label != "patient" {
			t.Errorf("there are %d keys: %v", len(keys), keys)
		}
	})
}

func TestFormOfAnotherSiteIsNotOfferedAgain(t *testing.T) {
	losingTheDatabase(t, func(t *testing.T, databaseURL string, end func()) {
		c := newSite(t, databaseURL, httpBase, models.Options{Timeout: models.Timeout}).customer(t)
		end()
		header := http.Header{"Sec-Fetch-Site": {"cross-site"}}
		for name, value := range formType {
			header[name] = value
		}
		refused := c.send(http.MethodPost, "/api-keys", generation("planted", uuid.NewString()).Encode(), header)
		refused.is(http.StatusForbidden).none("button", "Try again")
		if strings.Contains(refused.body, "planted") {
			t.Error("the response shows what another site has sent")
		}
	})
}
