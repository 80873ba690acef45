package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"portal/models"
	"portal/models/modelstest"
)

func TestPagesWithoutTheDatabase(t *testing.T) {
	losingTheDatabase(t, func(t *testing.T, databaseURL string, end func()) {
		s := newSite(t, databaseURL, httpBase, models.Options{Timeout: models.Timeout})
		c := s.customer(t)
		key := "/api-keys/" + c.key("production").ID.String()
		formID := c.get("/api-keys").formID()
		end()
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			for _, away := range []answer{
				v.get("/api-keys"), v.get("/login"), v.post("/api-keys", generation("label", formID)),
				v.signIn(c.email, password), v.post("/logout", nil),
			} {
				away.is(http.StatusServiceUnavailable).says("can’t reach its database", "Try again")
				if away.header.Get("Retry-After") == "" {
					t.Error("the response does not say when to try again")
				}
				// The request id is random: it may contain any three letters.
				body := strings.ReplaceAll(away.body, away.header.Get("X-Request-Id"), "")
				if strings.Contains(strings.ToLower(body), "sql") {
					t.Errorf("the response contains the cause: %s", away.text())
				}
			}
		})
		if c.sessionCookie() == "" {
			t.Error("the response deletes the session cookie")
		}

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
		foreign := c.send(http.MethodPost, "/api-keys", generation("planted", formID).Encode(),
			"Sec-Fetch-Site: cross-site", modelstest.FormType)
		foreign.is(http.StatusForbidden).none("button", "Try again")
		if strings.Contains(foreign.body, "planted") {
			t.Error("the response shows what another site has sent")
		}
	})
}

// losingTheDatabase runs a test on SQLite and on PostgreSQL. The database fails when the test calls
// end.
func losingTheDatabase(t *testing.T, test func(t *testing.T, databaseURL string, end func())) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		databaseURL := modelstest.SQLiteURL(t)
		test(t, databaseURL, func() { damageSQLite(t, databaseURL) })
	})
	t.Run("postgres", func(t *testing.T) {
		cluster := modelstest.OwnCluster(t)
		test(t, cluster.URL("postgres"), func() {
			modelstest.Must(t, cluster.Halt())
		})
	})
}

// damageSQLite makes the schema unreadable, which breaks every connection.
func damageSQLite(t *testing.T, databaseURL string) {
	t.Helper()
	modelstest.Exec(t, databaseURL, `PRAGMA writable_schema = ON;
		UPDATE sqlite_schema SET sql = '-' || sql WHERE name = 'accounts';
		PRAGMA schema_version = 1000`)
}
