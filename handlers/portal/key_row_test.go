package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
)

func naming(name string) url.Values { return url.Values{"name": {name}} }

func TestAKeyIsRenamedInItsRow(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			c.visitor = as.of(t, c.visitor)
			key := c.key("before")
			path := "/api-keys/" + key.ID.String() + "/name"

			asked := c.get(path).is(http.StatusOK)
			field := asked.one("textbox", "New name")
			if field.attr("value") != "before" || !field.has("autofocus") {
				t.Errorf("the field holds %q, or does not take the focus", field.attr("value"))
			}
			asked.one("cell", "before")
			kept := asked.one("button", "Cancel").form()
			if kept.attr("action") != "/api-keys/"+key.ID.String() {
				t.Error("there is no way to keep the label")
			}

			done := c.post(path, naming(" after "))
			if !as.htmx {
				done.redirects("/api-keys#menu-" + key.ID.String())
				done = c.get("/api-keys")
			}
			done.is(http.StatusOK).one("cell", "after")
			done.says("API key " + key.Masked() + " renamed to “after”.")
			if menu, ok := done.byID("menu-" + key.ID.String()); as.htmx && (!ok || !menu.has("autofocus")) {
				t.Error("the row's menu does not take the focus")
			}
		})
	})
}

func TestARefusedNameIsKeptAndExplained(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("stays")
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			for _, name := range []string{"  ", strings.Repeat("long ", 20) + "!", "a\x01b"} {
				refused := v.post("/api-keys/"+key.ID.String()+"/name", naming(name)).is(http.StatusUnprocessableEntity)
				field := refused.one("textbox", "New name")
				if field.attr("value") != name || field.attr("aria-invalid") != "true" {
					t.Errorf("the field holds %q, want the input", field.attr("value"))
				}
				problem, ok := refused.byID(field.attr("aria-describedby"))
				if !ok || problem.role() != "alert" {
					t.Error("no alert describes the field")
				}
				refused.one("cell", "stays")
			}
		})
		c.get("/api-keys").one("cell", "stays")
	})
}

func TestKeepingTheNameLeadsBackToTheMenu(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("kept")
		path := "/api-keys/" + key.ID.String() + "?focus=menu"
		c.get(path).redirects("/api-keys#menu-" + key.ID.String())
		row := c.fragments().get(path).is(http.StatusOK)
		if menu, ok := row.byID("menu-" + key.ID.String()); !ok || !menu.has("autofocus") || row.one("button", "Revoke").has("autofocus") {
			t.Error("the row's menu does not take the focus")
		}
	})
}

func TestDetailsShowTheRequestsOfAKey(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.used("busy", 3)
		path := "/api-keys/" + key.ID.String() + "/usage"
		button := c.get("/api-keys").one("button", "3 in 30 days")
		if form := button.form(); form.attr("action") != path || button.attr("aria-expanded") != "false" {
			t.Error("the usage is not a form that leads to the details")
		}

		page := c.get(path).is(http.StatusOK)
		if page.one("button", "3 in 30 days").attr("aria-expanded") != "true" {
			t.Error("the button does not say that the details are open")
		}
		details, ok := page.byID("api-key-" + key.ID.String() + "-details")
		if !ok {
			t.Fatal("there are no details")
		}
		for _, part := range []element{details, c.fragments().get(path).is(http.StatusOK).element} {
			today := time.Now().UTC().Format("2 Jan 2006")
			part.says("3 requests in the last 30 days, 3 of them on "+today, today+": 3", "Last 24 hours 3 requests")
			part.says(today+" (UTC): 3 in total", "4 2 0", "Today")
			for _, finding := range []string{key.Label, key.LastFour} {
				if strings.Contains(part.text(), finding) {
					t.Errorf("the details say %q, by which the row of the key is found", finding)
				}
			}
		}
	})
}

func TestDetailsOfAKeyThatWasNeverUsed(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("idle")
		c.fragments().get("/api-keys/"+key.ID.String()+"/usage").is(http.StatusOK).says("No requests in the last 30 days", "None yet")
	})
}

func TestDetailsOfARevokedKeyAreRemoved(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("gone")
		c.revoke(key)
		for _, way := range []string{"/usage", "/name"} {
			c.get("/api-keys/" + key.ID.String() + way).redirects("/api-keys")
			gone := c.fragments().get("/api-keys/" + key.ID.String() + way).is(http.StatusOK)
			gone.says("was already revoked")
			if !strings.Contains(gone.body, `hx-target="#api-key-`+key.ID.String()+`-details" hx-swap="delete"`) {
				t.Error("the details stay")
			}
		}
	})
}

func TestConfirmationShowsTheUseOfTheKey(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		ask := func(key models.Key) answer {
			return c.fragments().get("/api-keys/" + key.ID.String() + "/revocation").is(http.StatusOK)
		}
		ask(c.used("busy", 2)).says("Still in use. Used just now, 2 requests in the last 24 hours.")
		ask(c.used("calm", 1)).says("Used just now, 1 request in the last 24 hours.")
		never := ask(c.key("never"))
		never.says("This key has never been used.")
		if containsText(never, "Still in use") {
			t.Error("it warns of a key that was never used")
		}
	})
}

func TestUsageAndNamesOfAnotherAccountAreNotFound(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		owner, stranger := s.customer(t), s.customer(t)
		key := owner.key("mine alone")
		for _, id := range []string{key.ID.String(), uuid.NewString(), "no-id"} {
			bothVoices(t, func(t *testing.T, as voice) {
				v := as.of(t, stranger.visitor)
				for _, refused := range []answer{
					v.get("/api-keys/" + id + "/usage"),
					v.get("/api-keys/" + id + "/name"),
					v.post("/api-keys/"+id+"/name", naming("theirs")),
					v.post("/api-keys/"+id+"/name", naming("")),
					v.get("/api-keys/" + id + "/revocation/outcome"),
				} {
					refused.is(http.StatusNotFound)
					if containsText(refused, "mine alone") {
						t.Error("the response contains the key's label")
					}
				}
			})
		}
		owner.get("/api-keys").one("cell", "mine alone")
	})
}
