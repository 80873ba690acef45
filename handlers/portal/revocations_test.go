package portal_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"
)

func TestRevokeAsksInTheRow(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key, other := c.key("asked"), c.key("other")
		path := "/api-keys/" + key.ID.String() + "/revocation"

		page := c.get(path).is(http.StatusOK)
		page.one("heading", "API Keys")
		row := page.one("cell", "asked").parent()
		row.says("takes effect at once", "cannot be undone")
		if !row.one("button", "Cancel").has("autofocus") {
			t.Error("Cancel does not take the focus")
		}
		if form := row.one("button", "Confirm revoke").form(); form.attr("method") != "post" || form.attr("action") != path {
			t.Error("Confirm revoke is not a form that revokes the key")
		}
		row.none("button", "Revoke")
		page.one("cell", other.Label).parent().one("button", "Revoke")

		fragment := c.fragments().get(path).is(http.StatusOK)
		fragment.one("button", "Confirm revoke")
		fragment.none("cell", "other")
		fragment.none("heading", "")
	})
}

func TestCancelLeadsBackToTheRow(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("kept")
		path := "/api-keys/" + key.ID.String()
		c.get(path).redirects("/api-keys#revoke-" + key.ID.String())

		row := c.fragments().get(path).is(http.StatusOK)
		row.one("cell", "kept")
		revoke := row.one("button", "Revoke")
		if !revoke.has("autofocus") || revoke.attr("id") != "revoke-"+key.ID.String() {
			t.Error("the row's Revoke does not take the focus")
		}
	})
}

func TestConfirmedRevocationRemovesTheRow(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			c.visitor = as.of(t, c.visitor)
			first, last := c.key("first"), c.key("last")

			done := c.post("/api-keys/"+first.ID.String()+"/revocation", nil)
			if !as.htmx {
				done.redirects("/api-keys")
				done = c.get("/api-keys")
			}
			said := done.is(http.StatusOK).all("status", "was revoked")
			if len(said) == 0 && !containsText(done, "“first” ("+first.Masked()+") was revoked") {
				t.Error("nothing says that the key was revoked")
			}
			done.none("cell", "first")

			done = c.post("/api-keys/"+last.ID.String()+"/revocation", nil)
			if as.htmx {
				done = refreshed(t, c.visitor, done.is(http.StatusOK))
			} else {
				done = c.get(done.header.Get("Location"))
			}
			done.is(http.StatusOK).says("No API keys yet")
			if active := c.keys(); len(active) != 0 {
				t.Errorf("%d keys are active", len(active))
			}
		})
	})
}

func TestFocusStaysInTheListAfterARevocation(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		first := c.key("first")
		c.key("last")
		done := c.fragments().post("/api-keys/"+first.ID.String()+"/revocation", nil).is(http.StatusOK)
		heading := done.one("heading", "Active keys")
		if !heading.has("autofocus") || heading.attr("tabindex") != "-1" {
			t.Error("the list's heading does not take the focus")
		}
	})
}

func TestRevokingARevokedKeySaysSo(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("gone")
		c.revoke(key)
		path := "/api-keys/" + key.ID.String()
		for _, ask := range []func(v *visitor) answer{
			func(v *visitor) answer { return v.get(path) },
			func(v *visitor) answer { return v.get(path + "/revocation") },
			func(v *visitor) answer { return v.post(path+"/revocation", nil) },
		} {
			ask(c.visitor).redirects("/api-keys")
			c.get("/api-keys").is(http.StatusOK).one("status", "“gone” ("+key.Masked()+") was already revoked")
			fragment := ask(c.fragments()).is(http.StatusOK)
			fragment.says("was already revoked")
			refreshed(t, c.visitor, fragment)
		}
	})
}

func TestAnotherAccountsKeyIsNotFound(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		owner, stranger := s.customer(t), s.customer(t)
		key := owner.key("mine alone")
		for _, id := range []string{key.ID.String(), uuid.NewString(), "no-id", uuid.Nil.String()} {
			bothVoices(t, func(t *testing.T, as voice) {
				v := as.of(t, stranger.visitor)
				for _, refused := range []answer{
					v.get("/api-keys/" + id),
					v.get("/api-keys/" + id + "/revocation"),
					v.post("/api-keys/"+id+"/revocation", nil),
				} {
					refused.is(http.StatusNotFound)
					if containsText(refused, "mine alone") {
						t.Error("the response contains the key's label")
					}
				}
				v.get("/api-keys").is(http.StatusOK).none("cell", "mine alone")
			})
		}
		owner.get("/api-keys").one("cell", "mine alone")
	})
}
