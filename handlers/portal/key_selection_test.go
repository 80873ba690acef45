package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"portal/models"
	"portal/models/keys"
)

func TestSelectedKeysAreRevoked(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		const path = "/api-keys/revocation"
		used, secret := c.newKey("used", [16]byte{})
		c.use(secret)
		unused, kept := c.key("unused"), c.key("kept")
		foreign := c.site.customer(t).key("foreign")
		selection := func(keys ...keys.Key) url.Values {
			fields := url.Values{}
			for _, key := range keys {
				fields.Add("selected", key.ID.String())
			}
			return fields
		}

		list := c.get("/api-keys?" + selection(used).Encode()).is(http.StatusOK)
		if box := list.one("checkbox", "Select used"); !box.has("checked") || list.one("checkbox", "Select kept").has("checked") {
			t.Error("the list does not select the keys of the query string")
		}
		list.one("button", "Revoke selected").form().with("action", path)

		asked := v.get(path + "?" + selection(used, unused, foreign).Encode()).is(http.StatusOK)
		asked.says("Revoke these 2 keys?", "1 request in the last 24 hours", "This key has never been used.")
		asked.one("button", "Cancel").with("autofocus", "")
		asked.one("button", "Confirm revoke")
		if containsText(asked, "kept") || containsText(asked, "foreign") {
			t.Error("the page has a key that was not selected, or a foreign one")
		}
		none := v.get(path)
		none.says("None of the selected keys is active.")
		none.none("button", "Confirm revoke")

		form := selection(used, unused)
		form.Set("reason", strings.Repeat("a", 501))
		v.post(path, form).is(http.StatusUnprocessableEntity).one("alert", "500")
		v.post(path, selection(used, foreign)).is(http.StatusNotFound)
		if len(c.keys()) != 3 {
			t.Fatal("a refused form revokes")
		}
		form.Set("reason", "Cleaned up")
		v.post(path, form).redirects("/api-keys")
		c.get("/api-keys").one("status", "2 API keys were revoked.")
		if left := c.keys(); len(left) != 1 || left[0].ID != kept.ID {
			t.Errorf("left are %+v", left)
		}
		c.get("/api-keys/revoked").says("Reason: Cleaned up")
		v.post(path, form).redirects("/api-keys")
		c.get("/api-keys").one("status", "The selected keys were already revoked or had expired.")
	})
}
