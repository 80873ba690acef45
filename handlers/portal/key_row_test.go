package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

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

func TestRowsShowTheRequestsOfTheirKeys(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		for want, key := range map[string]models.Key{
			"3 requests in the last 30 days":  c.used("busy", 3),
			"1 request in the last 30 days":   c.used("calm", 1),
			"No requests in the last 30 days": c.key("idle"),
		} {
			bothVoices(t, func(t *testing.T, as voice) {
				v := as.of(t, c.visitor)
				row, ok := v.get("/api-keys").byID("api-key-" + key.ID.String())
				if !ok {
					t.Fatal("there is no row")
				}
				row.says(want)
				usage := v.get(row.one("link", "Usage").attr("href")).is(http.StatusOK)
				usage.says(want, key.Masked())
			})
		}
	})
}

func TestTheNameOfARevokedKeyIsNotEdited(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("gone")
		c.revoke(key)
		path := "/api-keys/" + key.ID.String() + "/name"
		c.get(path).redirects("/api-keys")
		c.fragments().get(path).is(http.StatusOK).says("was already revoked")
	})
}

func TestConfirmationShowsTheUseOfTheKey(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		ask := func(key models.Key) answer {
			return c.fragments().get("/api-keys/" + key.ID.String() + "/revocation").is(http.StatusOK)
		}
		ask(c.used("busy", 2)).says("Still in use. Used just now, 2 requests in the last 24 hours.")
		calm := c.used("calm", 1)
		ask(calm).says("Used just now, 1 request in the last 24 hours.", "Revoke calm ("+calm.Masked()+")?")
		never := ask(c.key("never"))
		never.says("This key has never been used.")
		if containsText(never, "Still in use") {
			t.Error("it warns of a key that was never used")
		}
	})
}
