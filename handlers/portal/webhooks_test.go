package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/handlers/handlerstest"
	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/webhooks"
)

// asOwnerOfWebhooks runs a test on a portal with webhooks, for pages and again for fragments.
func asOwnerOfWebhooks(t *testing.T, run func(t *testing.T, c customer, v *visitor)) {
	t.Helper()
	asCustomer(t, models.Options{Webhooks: &webhooks.Guard{}, Keyring: handlerstest.Keyring(t, strings.Repeat("secret", 8), "")}, run)
}

func endpointForm(url_ string, groups ...string) url.Values {
	return url.Values{"url": {url_}, "group": groups}
}

func (c customer) endpoints() []webhooks.Endpoint {
	c.t.Helper()
	return modelstest.Value(c.store.Webhooks.List(c.t.Context(), c.account.ID))(c.t)
}

func TestWebhookPages(t *testing.T) {
	asOwnerOfWebhooks(t, func(t *testing.T, c customer, v *visitor) {
		c.get("/settings").is(http.StatusOK).one("link", "Webhooks")
		member := c.colleague(people.RoleMember)
		path := member.get("/integrate").is(http.StatusOK).one("link", "Receive events").attr("href")
		member.get(path).is(http.StatusForbidden).one("heading", "Only owners can open Webhooks")
		page := c.get("/webhooks").is(http.StatusOK)
		page.one("heading", "Webhooks")
		page.one("textbox", "Endpoint URL")
		page.one("checkbox", "Keys and agents")
		page.one("checkbox", "People and sign-in")
		page.none("checkbox", "Calls") // without LiveKit

		for _, wrong := range []url.Values{
			endpointForm("http://example.com/", "keys"), endpointForm("https://127.0.0.1/", "keys"), endpointForm("https://10.0.0.1/", "keys"),
			endpointForm("https://user@example.com/", "keys"), endpointForm("https://example.com/#x", "keys"), endpointForm("https://example.com/"), endpointForm("https://example.com/", "all"),
		} {
			refused := v.post("/webhooks", wrong).is(http.StatusUnprocessableEntity)
			if got := refused.one("textbox", "Endpoint URL").attr("value"); got != wrong.Get("url") {
				t.Errorf("the input is now %q", got)
			}
			if len(refused.all("alert", "")) == 0 {
				t.Errorf("no alert for %v", wrong)
			}
		}
		added := v.post("/webhooks", endpointForm(" https://example.com/hook\u00a0\u200b", "keys", "people")).is(http.StatusOK)
		added.one("heading", "Endpoint added")
		secret := added.one("textbox", "Signing secret").attr("value")
		if !strings.HasPrefix(secret, "whsec_") || len(secret) != len("whsec_")+44 {
			t.Errorf("the secret is %q", secret)
		}
		added.one("button", "Copy secret")
		added.one("button", "Done")
		endpoint := c.endpoints()[0]
		path = "/webhooks/" + endpoint.ID.String()
		if href := c.get("/webhooks").is(http.StatusOK).one("table", "Endpoints").one("link", "https://example.com/hook").attr("href"); href != path {
			t.Errorf("the URL leads to %s", href)
		}

		c.get(path).is(http.StatusOK).one("heading", "https://example.com/hook")
		v.post(path+"/test", nil).redirects(path)
		delivery := c.get(path).is(http.StatusOK).one("table", "Deliveries")
		delivery.says("webhook.test", "Waiting")
		delivery.none("button", "Resend")

		for _, asked := range []struct{ path, button, confirm string }{
			{"rotation", "Rotate secret", "Confirm rotation"}, {"disabling", "Disable", "Confirm disabling"}, {"removal", "Remove", "Confirm removal"},
		} {
			if action := c.get(path).one("button", asked.button).form().attr("action"); action != path+"/"+asked.path {
				t.Errorf("%s leads to %s", asked.button, action)
			}
			asking := v.get(path + "/" + asked.path).is(http.StatusOK)
			asking.one("button", asked.confirm)
			asking.one("button", "Cancel")
		}
		rotated := v.post(path+"/rotation", nil).is(http.StatusOK)
		rotated.one("heading", "Secret rotated")
		if again := rotated.one("textbox", "Signing secret").attr("value"); again == secret || !strings.HasPrefix(again, "whsec_") {
			t.Errorf("the new secret is %q", again)
		}
		if strings.Contains(c.get(path).body, "whsec_") {
			t.Error("the page has the secret")
		}
		events := c.get(path).is(http.StatusOK).one("button", "Save events").form()
		events.one("checkbox", "Keys and agents").with("checked", "")
		v.post(events.attr("action"), nil).is(http.StatusUnprocessableEntity).one("alert", "Choose at least one group of events.")
		v.post(events.attr("action"), url.Values{"group": {"people"}}).redirects(path)
		c.get(path).is(http.StatusOK).says("The events were saved.")
		if groups := c.endpoints()[0].Groups; len(groups) != 1 || groups[0] != record.GroupPeople {
			t.Errorf("the groups are %v", groups)
		}
		v.post(path+"/disabling", nil).redirects(path)
		disabled := c.get(path).is(http.StatusOK)
		disabled.none("button", "Send test event")
		disabled.one("table", "Deliveries").says("Failed", "The endpoint was disabled.")
		v.post(path+"/enabling", nil).redirects(path)
		event := c.get(path).is(http.StatusOK).all("button", "Resend")[0].form()
		v.post(path+"/resend", url.Values{"event_id": {event.must("event_id")}, "event": {event.must("event")}}).redirects(path)
		c.get(path).one("table", "Deliveries").says("Waiting")

		foreign := c.customer(t)
		for _, action := range []string{"", "/rotation", "/disabling", "/removal"} {
			foreign.get(path + action).is(http.StatusNotFound)
		}
		for _, action := range []string{"/rotation", "/disabling", "/removal", "/enabling", "/test", "/events"} {
			foreign.post(path+action, nil).is(http.StatusNotFound)
		}
		foreign.post(path+"/resend", url.Values{"event_id": {uuid.NewString()}, "event": {"x"}}).is(http.StatusNotFound)
		v.post(path+"/removal", nil).redirects("/webhooks")
		if n := len(c.endpoints()); n != 0 {
			t.Errorf("%d endpoints", n)
		}
		for range webhooks.MaxWebhooks {
			c.post("/webhooks", endpointForm("https://example.com/", "keys")).is(http.StatusOK)
		}
		v.post("/webhooks", endpointForm("https://example.com/", "keys")).is(http.StatusUnprocessableEntity)
	})
}

// must returns the value of the field with the name.
func (e element) must(name string) string {
	e.t.Helper()
	field, ok := e.named(name)
	if !ok {
		e.t.Fatalf("there is no field %q", name)
	}
	return field.attr("value")
}
