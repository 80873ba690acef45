package portal_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/value"
)

const unusedPath = "/settings/unused-keys"

func unusedAfter(days string) url.Values { return url.Values{"after": {days}} }

// offersUnused checks the choices and the current one.
func (c customer) offersUnused(t *testing.T, selected string, want ...string) {
	t.Helper()
	page := c.get("/settings").is(http.StatusOK)
	page.one("combobox", "Revoke unused keys")
	if all, current := page.options("Revoke unused keys"); !slices.Equal(all, want) || current != selected {
		t.Errorf("the page offers %q, now %q", all, current)
	}
}

func TestUnusedKeysSetting(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		all := []string{"Never", "After 30 days", "After 90 days", "After 180 days", "After 365 days"}
		c.offersUnused(t, "Never", all...)
		c.get("/settings").says("no key is revoked for 14 days")
		c.post(unusedPath, unusedAfter("90")).redirects("/settings")
		c.offersUnused(t, "After 90 days", all...)
		if got := modelstest.Value(c.store.Accounts.Find(t.Context(), c.account.ID))(t).UnusedLifetime; got != 90*value.Day {
			t.Errorf("stored %s", got)
		}
		c.get("/activity").says("changed when unused API keys are revoked")
		for _, wrong := range []string{"", "1", "x", "-1", "91", "106752000"} {
			v.post(unusedPath, unusedAfter(wrong)).is(http.StatusUnprocessableEntity).says("Choose one of the options")
		}
		c.offersUnused(t, "After 90 days", all...)
		c.colleague(people.RoleMember).post(unusedPath, unusedAfter("30")).is(http.StatusForbidden)
	})
}

// The operator's setting is the default, and the most that an account can choose.
func TestUnusedKeysSettingOfTheOperator(t *testing.T) {
	asCustomer(t, models.Options{KeyUnusedLifetime: 90 * value.Day}, func(t *testing.T, c customer, v *visitor) {
		c.offersUnused(t, "After 90 days", "After 30 days", "After 90 days")
		v.post(unusedPath, unusedAfter("180")).is(http.StatusUnprocessableEntity)
		v.post(unusedPath, unusedAfter("0")).is(http.StatusUnprocessableEntity)
		c.post(unusedPath, unusedAfter("30")).redirects("/settings")
		c.offersUnused(t, "After 30 days", "After 30 days", "After 90 days")
	})
}
