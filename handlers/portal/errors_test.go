package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
)

func TestUnknownAddressHasAPage(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		for _, v := range []*visitor{s.visitor(t), s.customer(t).visitor} {
			page := v.get("/nothing").is(http.StatusNotFound)
			page.one("heading", "Page not found")
			page.one("link", "Go to API Keys")
			v.get("/static/app.css").is(http.StatusNotFound)
		}
	})
}

// Without JavaScript, forms without fields lead to addresses that end in "?".
func TestAddressesDoNotEndInAnEmptyQuery(t *testing.T) {
	c := sqliteSite(t, httpBase).customer(t)
	usage := "/api-keys/" + c.key("prod").ID.String() + "/usage"
	for _, path := range []string{"/api-keys", "/people", usage} {
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
				answers := []answer{
					v.get("/nothing").is(http.StatusNotFound),
					v.get("/logout").is(http.StatusMethodNotAllowed),
					v.get("/static/app.css").is(http.StatusNotFound),
					v.send(http.MethodPost, "/agents", "name=planted", http.Header{"Sec-Fetch-Site": {"cross-site"}}).is(http.StatusForbidden),
					v.send(http.MethodPost, "/login", "%zz", formType).is(http.StatusBadRequest),
				}
				if name == "a visitor" {
					for _, page := range answers {
						page.none("navigation", "Main")
						page.none("button", "Sign out")
					}
					return
				}
				for _, page := range append(answers,
					v.get("/api-keys/"+foreign.ID.String()+"/revocation").is(http.StatusNotFound),
					v.get("/agents/no-id").is(http.StatusNotFound),
					v.post("/api-keys", generation(strings.Repeat("x", 256<<10), "")).is(http.StatusRequestEntityTooLarge),
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

func TestAddressOfAFormIsNotAPage(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		page := s.customer(t).get("/logout").is(http.StatusMethodNotAllowed)
		page.one("heading", "This page can’t be opened directly")
		if got := page.header.Get("Allow"); got != http.MethodPost {
			t.Errorf("Allow is %q", got)
		}
	})
}

func TestErrorFragmentGoesIntoTheAlertOfThePage(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		failure := s.customer(t).fragments().get("/api-keys/no-id").is(http.StatusNotFound)
		if !strings.Contains(failure.body, `hx-target="#failure"`) {
			t.Error("the response does not go into the page's alert")
		}
		failure.none("heading", "")
	})
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("stays")
		for _, header := range []http.Header{
			{"Sec-Fetch-Site": {"cross-site"}},
			{"Sec-Fetch-Site": {"same-site"}},
			{"Origin": {"https://example.com"}},
			{"Origin": {"null"}},
		} {
			bothVoices(t, func(t *testing.T, as voice) {
				v := as.of(t, c.visitor)
				for _, path := range []string{
					"/login", "/logout", "/api-keys", "/agents", "/api-keys/" + key.ID.String() + "/revocation",
				} {
					v.send(http.MethodPost, path, "label=planted", header).is(http.StatusForbidden)
				}
			})
		}
		page := c.get("/api-keys").is(http.StatusOK)
		if rows := page.all("button", "Revoke"); len(rows) != 1 {
			t.Errorf("%d keys are listed, want the one", len(rows))
		}
	})
}

func TestAFormThatIsTooLargeIsRefused(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, s.customer(t).visitor)
			refused := v.post("/api-keys", generation(strings.Repeat("x", 256<<10), ""))
			refused.is(http.StatusRequestEntityTooLarge).says("Shorten it")
		})
	})
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
				problem, ok := refused.byID(lastField(input.attr("aria-describedby")))
				if !ok || problem.attr("role") != "alert" || problem.text() == "" {
					t.Errorf("no alert describes the field %q", field)
				}
			}
		})
	})
}

// lastField returns the last of several words.
func lastField(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

func TestPagesSayThatTheDatabaseIsAway(t *testing.T) {
	losingTheDatabase(t, saysThatTheDatabaseIsAway)
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
			if err := cluster.Halt(); err != nil {
				t.Fatal(err)
			}
		})
	})
}

func saysThatTheDatabaseIsAway(t *testing.T, databaseURL string, end func()) {
	t.Helper()
	s := newSite(t, databaseURL, httpBase, models.Options{Timeout: models.Timeout})
	c := s.customer(t)
	formID := c.get("/api-keys").formID()
	end()
	bothVoices(t, func(t *testing.T, as voice) {
		v := as.of(t, c.visitor)
		for _, ask := range []func() answer{
			func() answer { return v.get("/api-keys") },
			func() answer { return v.get("/login") },
			func() answer { return v.post("/api-keys", generation("label", formID)) },
			func() answer { return v.signIn(c.email, password) },
			func() answer { return v.post("/logout", nil) },
		} {
			away := ask().is(http.StatusServiceUnavailable)
			away.says("can’t reach its database", "Try again")
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
}

// damageSQLite makes the schema unreadable, which breaks every connection.
func damageSQLite(t *testing.T, databaseURL string) {
	t.Helper()
	modelstest.Exec(t, databaseURL, `PRAGMA writable_schema = ON;
		UPDATE sqlite_schema SET sql = '-' || sql WHERE name = 'accounts';
		PRAGMA schema_version = 1000`)
}
