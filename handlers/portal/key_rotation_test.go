package portal_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/templates"
)

// keyInUse generates a key and returns a function that uses it.
func (c customer) keyInUse(label string, replaces uuid.UUID) (keys.Key, func()) {
	c.t.Helper()
	key, secret := c.newKey(label, replaces)
	return key, func() { c.use(secret) }
}

func rotationOf(key keys.Key) string { return "/api-keys/" + key.ID.String() + "/rotation" }

func TestARotationBeginsWithTheReplacement(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		old := c.key("production")
		page := c.get(rotationOf(old)).is(http.StatusOK)
		page.one("heading", "Rotate a key")
		for _, step := range []string{"Create replacement key", "Wait for its first request", "Wait until the old key is no longer used", "Revoke the old key"} {
			page.one("heading", step)
		}
		page.says("production", old.Masked())
		page.one("button", "Create replacement key").form().with("method", "post").with("action", rotationOf(old))
		page.none("button", "Revoke the old key")
		c.get(rotationOf(old) + "/revocation").redirects(rotationOf(old))
		c.fragments().get(rotationOf(old) + "/progress").redirects(rotationOf(old))
	})
}

func TestTheReplacementIsShownOnceAndCarriesTheLabel(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		old := c.key("production")
		made := v.post(rotationOf(old), url.Values{"form_id": {c.get(rotationOf(old)).formID()}}).is(http.StatusOK)
		key := onceInTheField(t, made)
		made.one("button", "Done").form().with("method", "get").with("action", rotationOf(old))
		replacement, err := c.store.Keys.Replacement(context.Background(), c.account.ID, old.ID)
		if err != nil || replacement.Label != "production" || !strings.HasSuffix(key, replacement.LastFour) {
			t.Fatalf("the replacement is %+v, %v", replacement, err)
		}
		page := c.get(rotationOf(old)).is(http.StatusOK)
		page.none("button", "Create replacement key")
		page.says(replacement.Masked(), "Waiting for the first request", "The old key has never been used")
		page.one("button", "Revoke the old key")
		if strings.Contains(page.body, key[4:]) {
			t.Error("the page shows the key again")
		}
		neverAgain(t, c.visitor, key)
	})
}

func TestTheReplacementOfALostKeySpeaksOfALostKey(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		lost := c.key("production")
		path := rotationOf(lost) + "?lost=yes"
		page := c.get(path).is(http.StatusOK)
		page.one("heading", "Revoke the lost key")
		made := c.post(path, url.Values{"form_id": {page.formID()}}).is(http.StatusOK)
		made.one("button", "Done").form().with("action", path)
		for _, path := range []string{path, rotationOf(lost) + "/progress?lost=yes", rotationOf(lost) + "/revocation?lost=yes"} {
			if page := c.fragments().get(path).is(http.StatusOK); !containsText(page, "the lost key") || containsText(page, "the old key") || containsText(page, "The old key") {
				t.Errorf("%s does not speak of a lost key", path)
			}
		}
		c.get(rotationOf(lost)).one("button", "Revoke the old key")
	})
}

func TestReplacementKeepsTheRestrictions(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.agent("Back office")
		front := c.agent("Front desk")
		c.post("/api-keys", restricted("expires", "30", "agents", "only", "agent", front.ID.String(), "networks", "192.0.2.7"))
		key := c.keys()[0]
		page := c.get(rotationOf(key)).is(http.StatusOK)
		page.says("keeps the label production and the allowed agents and networks. It expires " + templates.LastDay(*key.ExpiresAt).Format("2 Jan 2006") + ".")
		expires := "expires " + templates.LastDay(*key.ExpiresAt).Format("2 Jan 2006")
		page.says("until you revoke the old one, which "+expires+".", "once it is no longer used. It "+expires+".")
		made := c.post(rotationOf(key), url.Values{"form_id": {page.formID()}}).is(http.StatusOK)
		made.one("region", "Example request").says(front.ID.String())
		if plain := c.get(rotationOf(c.key("free"))).is(http.StatusOK); containsText(plain, "allowed agents") || containsText(plain, "expires") {
			t.Error("a key without restrictions has some")
		}
	})
}

func TestRotationShowsTheUseOfBothKeys(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		old, useOld := c.keyInUse("production", uuid.Nil)
		replacement, useReplacement := c.keyInUse("production", old.ID)
		useOld()
		useOld()
		c.get(rotationOf(old)).says("Waiting for the first request", "Still in use", "In the last 24 hours: 2 requests with the old key, 0 with the new one.")
		useReplacement()
		page := c.get(rotationOf(old))
		page.says("First request received", "Still in use", "2 requests with the old key, 1 with the new one", "Wait until it is no longer used")
		page.one("status", "still in use")
		if replacement.ReplacesID == nil {
			t.Error("the replacement replaces nothing")
		}
	})
}

func TestTheOldKeyIsRevokedInTheLastStep(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		old, useOld := c.keyInUse("production", uuid.Nil)
		c.keyInUse("production", old.ID)
		useOld()
		asked := v.get(rotationOf(old) + "/revocation").is(http.StatusOK)
		asked.says("takes effect immediately", "can’t be undone", "Still in use.", "1 request in the last 24 hours", "replacement has not been used yet")
		asked.one("button", "Cancel").with("autofocus", "")
		asked.none("button", "Revoke the old key")
		asked.one("button", "Confirm revoke").form().with("method", "post").with("action", rotationOf(old)+"/revocation")
		v.get(rotationOf(old)+"?asked=yes").one("button", "Revoke the old key").with("autofocus", "")
		v.post(rotationOf(old)+"/revocation", nil).redirects("/api-keys")
		page := voice{}.of(t, c.visitor)
		page.get("/api-keys").is(http.StatusOK).one("status", "was revoked")
		for _, repeat := range []func() answer{
			func() answer { return v.post(rotationOf(old)+"/revocation", nil) },
			func() answer { return v.get(rotationOf(old)) },
			func() answer { return v.get(rotationOf(old) + "/revocation") },
			func() answer { return v.post(rotationOf(old), url.Values{"form_id": {uuid.NewString()}}) },
		} {
			repeat().redirects("/api-keys")
			page.get("/api-keys").is(http.StatusOK).one("status", "was already revoked")
		}
	})
}

func TestDiscardedReplacementCanBeReplaced(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		old := c.key("production")
		lost, _ := c.keyInUse("production", old.ID)
		way := c.get(rotationOf(old)).one("link", "discard this replacement").attr("href")
		c.get(way).is(http.StatusOK).one("button", "Confirm revoke")
		c.revoke(lost)
		c.get(rotationOf(old)).one("button", "Create replacement key")
	})
}

func TestARepeatedFormMakesNoOtherReplacement(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		old := c.key("production")
		form := url.Values{"form_id": {c.get(rotationOf(old)).formID()}}
		v.post(rotationOf(old), form).is(http.StatusOK)
		repeat := v.post(rotationOf(old), form).is(http.StatusConflict)
		repeat.one("alert", "cannot be shown again")
		if wholeKey.MatchString(repeat.body) {
			t.Error("the response contains a key")
		}
		v.post(rotationOf(old), nil).is(http.StatusUnprocessableEntity).one("alert", "Try again")
		if keys := c.keys(); len(keys) != 2 {
			t.Errorf("there are %d keys, want 2", len(keys))
		}
	})
}

func TestProgressOfARotationIsSentWhenItChanges(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		old := c.key("production")
		_, use := c.keyInUse("production", old.ID)
		pollAddress := func(a answer) string {
			poll := a.byID("rotation-seen")
			return poll.attr("hx-get") + "?seen=" + poll.attr("value")
		}
		first := pollAddress(c.get(rotationOf(old)))
		c.fragments().get(first).is(http.StatusNoContent)
		use()
		changed := c.fragments().get(first).is(http.StatusOK)
		changed.says("First request received")
		second := pollAddress(changed)
		if second == first {
			t.Fatalf("the address to poll is still %q", second)
		}
		c.fragments().get(second).is(http.StatusNoContent)
		c.get(second).redirects(rotationOf(old))
		c.revoke(old)
		c.fragments().get(second).redirects("/api-keys")
	})
}
