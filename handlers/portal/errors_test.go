package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
)

// Without JavaScript, forms without fields lead to addresses that end in "?".
func TestAddressesDoNotEndInAnEmptyQuery(t *testing.T) {
	c := sqliteSite(t, httpBase).customer(t)
	name := "/api-keys/" + c.key("prod").ID.String() + "/name"
	for _, path := range []string{"/api-keys", "/people", name} {
		c.get(path + "?").redirects(path)
	}
	c.get("/api-keys?sort=label").is(http.StatusOK)
}

func TestErrorPagesKeepTheNavigation(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		foreign := s.customer(t).key("another's")
		for name, v := range map[string]*visitor{"signed in": s.customer(t).visitor, "a visitor": s.visitor(t)} {
			t.Run(name, func(t *testing.T) {
				v := voice{}.of(t, v)
				unknown := v.get("/nothing").is(http.StatusNotFound)
				unknown.one("heading", "Page not found")
				unknown.says("There is no page at this address.")
				unknown.one("link", "Go to API Keys")
				form := v.send(http.MethodPut, "/logout", "", modelstest.FormType).is(http.StatusMethodNotAllowed)
				form.headed("Allow", http.MethodPost)
				answers := []answer{
					unknown,
					form,
					v.get("/static/app.css").is(http.StatusNotFound),
					v.send(http.MethodPost, "/agents", "name=planted", "Sec-Fetch-Site: cross-site").is(http.StatusForbidden),
					v.send(http.MethodPost, "/login", "%zz", modelstest.FormType).is(http.StatusBadRequest),
				}
				long := v.send(http.MethodPost, "/login", "email="+strings.Repeat("x", 64<<10), modelstest.FormType)
				if name == "a visitor" {
					long.is(http.StatusRequestEntityTooLarge).says("Shorten it")
					for _, page := range answers {
						page.none("navigation", "Main")
						page.none("button", "Sign out")
					}
					return
				}
				large := v.post("/api-keys", generation(strings.Repeat("x", 256<<10), ""))
				large.is(http.StatusRequestEntityTooLarge).says("Shorten it")
				for _, page := range append(answers,
					v.get("/api-keys/"+foreign.ID.String()+"/revocation").is(http.StatusNotFound),
					v.get("/agents/no-id").is(http.StatusNotFound),
					large,
				) {
					for _, link := range page.one("navigation", "Main").all("link", "") {
						if link.has("aria-current") {
							t.Errorf("on an error page %q is the current page", link.text())
						}
					}
					for _, link := range []string{"API Keys", "Agents", "Activity"} {
						page.one("navigation", "Main").one("link", link)
					}
					page.one("button", "Sign out")
				}
			})
		}
	})
}

func TestAddressOfAFormLeadsToItsPage(t *testing.T) {
	onSiteWith(t, models.Options{Mail: true}, func(t *testing.T, s *site) {
		c := s.customer(t)
		for path, page := range map[string]string{
			"/logout": "/api-keys", "/account/email": "/account", "/settings/name": "/settings", "/people/invitations": "/people",
			"/people/invitations/" + uuid.NewString() + "/cancellation": "/people",
		} {
			c.get(path).redirects(page)
		}
	})
}

// Sign-in, sign-out and revoking keys do not count, and generating keys counts on its own. The
// clock stands still.
func TestChangesOfOneUserAreLimited(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		clock := modelstest.NewClock(time.Now())
		s := newSite(t, databaseURL, httpBase, models.Options{Now: clock.Now})
		c, other := s.customer(t), s.customer(t)
		key := "/api-keys/" + c.key("production").ID.String()
		agent := "/agents/" + c.agent("Night shift").ID.String()
		rename := func(v *visitor) answer { return v.post(key+"/name", url.Values{"name": {"staging"}}) }
		for range 120 {
			rename(c.fragments()).is(http.StatusOK)
		}
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			for path, fields := range map[string]url.Values{
				key + "/name":         {"name": {"other"}},
				"/agents":             {"name": {"Front desk"}, "form_id": {uuid.NewString()}},
				"/settings/name":      {"name": {"Acme"}},
				agent + "/name":       {"name": {"Reception"}},
				"/settings/two-step":  {"required": {"yes"}},
				key + "/restrictions": {"note": {"kept"}, "expires": {"30"}, "agents": {"only"}, "agent": {agent[len("/agents/"):]}, "networks": {"192.0.2.1"}},
				"/people/invitations": {"email": {"ada@example.com"}, "role": {"owner"}},
				"/account/password":   {"current_password": {password}, "new_password": {password + " 2"}},
			} {
				limited := v.post(path, fields).is(http.StatusTooManyRequests)
				limited.says("Too many changes. Wait 1 second, then try again.")
				if limited.header.Get("Retry-After") != "1" {
					t.Errorf("%s: Retry-After: %s", path, limited.header.Get("Retry-After"))
				}
				if as.htmx {
					if !strings.Contains(limited.body, `hx-target="#failure"`) {
						t.Errorf("%s: the response is not an alert of the page", path)
					}
					continue
				}
				form := limited.byID(limited.one("button", "Try again").attr("form"))
				for name, values := range fields {
					if field, ok := form.named(name); !ok || !strings.HasSuffix(name, "password") && field.attr("value") != values[0] {
						t.Errorf("%s: the input %s is lost", path, name)
					}
				}
			}
			v.get("/agents").is(http.StatusOK)
		})
		c.fragments().post("/api-keys", generation("more", c.get("/api-keys").formID())).is(http.StatusOK)
		c.fragments().post(key+"/revocation", nil).is(http.StatusOK)
		other.fragments().post("/agents", url.Values{"name": {"Front desk"}}).is(http.StatusOK)
		clock.Advance(time.Second)
		c.fragments().post("/agents", url.Values{"name": {"Front desk"}}).is(http.StatusOK)
		c.fragments().post("/agents", url.Values{"name": {"Front desk"}}).is(http.StatusTooManyRequests)
	})
}

// Generations count for the account, rotations included, and refused ones do not. Revocations are
// never delayed. The clock stands still.
func TestGenerationsOfAnAccountAreLimited(t *testing.T) {
	t.Parallel()
	clock := modelstest.NewClock(time.Now())
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{Now: clock.Now})
	c, stranger := s.customer(t), s.customer(t)
	colleague := c.colleague(people.RoleMember)
	generate := func(v *visitor) answer {
		return v.post("/api-keys", generation("production", uuid.NewString()))
	}
	revoke := func(key keys.Key) {
		modelstest.Value(s.store.Keys.Revoke(t.Context(), key.AccountID, key.ID, "", record.Operator()))(t)
	}
	rotate := func(key keys.Key, v *visitor) answer {
		return v.post("/api-keys/"+key.ID.String()+"/rotation", url.Values{"form_id": {uuid.NewString()}})
	}
	old := c.key("old")
	rotate(old, c.fragments()).is(http.StatusOK)
	for n := range 299 {
		if n < 5 {
			c.fragments().post("/api-keys", generation("", uuid.NewString())).is(http.StatusUnprocessableEntity)
			c.fragments().post("/api-keys", generation("production", "")).is(http.StatusUnprocessableEntity)
		}
		generate(c.fragments()).is(http.StatusOK)
		revoke(c.keys()[0])
	}
	limited := func(a answer) answer {
		t.Helper()
		a.is(http.StatusTooManyRequests).headed("Retry-After", "1").
			says("Too many new keys in this account. Wait 1 second, then try again.")
		return a
	}
	before := len(c.keys())
	fragment := limited(generate(colleague.fragments()))
	if !strings.Contains(fragment.body, `hx-target="#failure"`) {
		t.Error("the response is not an alert of the page")
	}
	limited(rotate(old, c.fragments()))
	page := limited(generate(c.visitor))
	form := page.byID(page.one("button", "Try again").attr("form"))
	if label, ok := form.named("label"); !ok || label.attr("value") != "production" {
		t.Error("the label is lost")
	}
	if after := len(c.keys()); after != before {
		t.Errorf("%d keys, want %d", after, before)
	}
	revoke(old)
	generate(stranger.fragments()).is(http.StatusOK)
	clock.Advance(time.Second)
	generate(colleague.fragments()).is(http.StatusOK)
	limited(generate(c.fragments()))
}

// A user who has made too many changes does not use up those of the others.
func TestChangesOfAnAccountAreLimited(t *testing.T) {
	t.Parallel()
	clock := modelstest.NewClock(time.Now())
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{Now: clock.Now})
	c, stranger := s.customer(t), s.customer(t)
	key := c.key("production")
	rename := func(by customer) answer {
		return by.fragments().post("/api-keys/"+key.ID.String()+"/name", url.Values{"name": {"staging"}})
	}
	for _, user := range []customer{c, c.colleague(people.RoleMember), c.colleague(people.RoleMember)} {
		for range 120 {
			rename(user).is(http.StatusOK)
		}
		for range 10 {
			rename(user).is(http.StatusTooManyRequests)
		}
	}
	last := c.colleague(people.RoleMember)
	rename(last).is(http.StatusTooManyRequests).says("Too many changes. Wait 1 second, then try again.")
	rename(stranger).is(http.StatusNotFound)
	clock.Advance(time.Second + time.Millisecond) // the interval is rounded up
	for range 3 {
		rename(last).is(http.StatusOK)
	}
	rename(last).is(http.StatusTooManyRequests)
}

// Reports that take long leave the slots of all users to others, and nothing delays a change.
func TestReadsOfOneUserAreLimited(t *testing.T) {
	t.Parallel()
	s := newSite(t, modelstest.PostgresURL(t), httpBase, models.Options{})
	c := s.customer(t)
	agent := "/agents/" + c.agent("Night shift").ID.String()
	colleague := c.colleague(people.RoleMember)
	c.key("production")
	db := modelstest.OpenDatabase(t, s.databaseURL)
	// Statements that read the last uses of keys wait until the gate is open.
	modelstest.Value(db.ExecContext(t.Context(), `CREATE TABLE gate AS SELECT 1 AS closed; ALTER TABLE api_key_last_uses RENAME TO stored_last_uses;
		CREATE FUNCTION gated() RETURNS SETOF stored_last_uses LANGUAGE plpgsql AS $$
		BEGIN
			WHILE EXISTS (SELECT 1 FROM gate) LOOP PERFORM pg_sleep(0.01); END LOOP;
			RETURN QUERY SELECT * FROM stored_last_uses;
		END $$;
		CREATE VIEW api_key_last_uses AS SELECT * FROM gated()`))(t)

	answers := make(chan answer, 6)
	for _, path := range []string{"/usage", "/usage?period=90d", "/api-keys", "/usage?period=30d", "/usage?period=24h", "/usage?period=7d"} {
		go func() { answers <- c.get(path) }()
	}
	for range 2 {
		(<-answers).is(http.StatusTooManyRequests).headed("Retry-After", "1").says("Too many of your pages", "then try again.")
	}
	c.fragments().get("/agents").is(http.StatusTooManyRequests).says("Too many of your pages")
	c.fragments().post(agent+"/name", url.Values{"name": {"Reception"}}).is(http.StatusOK)
	colleague.get("/agents").is(http.StatusOK)
	modelstest.Value(db.ExecContext(t.Context(), "DELETE FROM gate"))(t)
	for range 4 {
		(<-answers).is(http.StatusOK)
	}
	c.get("/agents").is(http.StatusOK)
}

func TestVeryLongInputIsKeptBesideItsError(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("production")
		pasted := strings.Repeat("long ", 50<<10/5) + "!"
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			for field, post := range map[string]func() answer{
				"Label":    func() answer { return v.post("/api-keys", generation(pasted, uuid.NewString())) },
				"Name":     func() answer { return v.post("/agents", url.Values{"name": {pasted}}) },
				"New name": func() answer { return v.post("/api-keys/"+key.ID.String()+"/name", url.Values{"name": {pasted}}) },
				"Email":    func() answer { return as.of(t, s.visitor(t)).signIn(pasted, "wrong") },
			} {
				refused := post().is(http.StatusUnprocessableEntity)
				input := refused.one("textbox", field)
				if input.attr("value") != pasted {
					t.Errorf("the field %q holds %d of %d bytes", field, len(input.attr("value")), len(pasted))
				}
				ids := input.attr("aria-describedby")
				if refused.byID(ids[strings.LastIndex(ids, " ")+1:]).with("role", "alert").text() == "" {
					t.Errorf("the alert of the field %q is empty", field)
				}
			}
		})
	})
}

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
				away.is(http.StatusServiceUnavailable).says("isn’t working on our side", "Try again")
				away.saysWhenToRetry()
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
			key + "/restrictions": {
				"agents": {"only"}, "agent": {uuid.NewString()}, "networks": {"192.0.2.0/24\n198.51.100.7"}, "add_address": {"yes"},
			},
			"/activity/filter": {"kind": {"keys"}, "q": {"staging"}},
		} {
			away := c.post(path, fields).is(http.StatusServiceUnavailable)
			away.one("alert", "isn’t working on our side").says("Try again")
			form := away.byID(away.one("button", "Try again").attr("form")).with("method", "post").with("action", path)
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

func TestFormsHaveNoContentCoding(t *testing.T) {
	s := sqliteSite(t, httpBase)
	c := s.customer(t)
	for _, v := range []*visitor{c.visitor, s.visitor(t)} {
		v.headers = []string{"Content-Encoding: gzip"}
		page := v.post("/login", url.Values{"email": {c.email}, "password": {password}}).is(http.StatusUnsupportedMediaType)
		if got := page.header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding %q", got)
		}
	}
	c.post("/api-keys", url.Values{"label": {"x"}}).is(http.StatusUnsupportedMediaType)
}
