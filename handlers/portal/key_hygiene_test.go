package portal_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

func TestWorthALookFiltersTheLists(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		second := modelstest.Value(c.store.People.Add(t.Context(), c.account.ID,
			people.NewUser{Email: "second-" + c.email, Role: people.RoleMember}, record.Operator()))(t)
		const day = value.Day
		at := func(ago time.Duration) string { return time.Now().UTC().Add(-ago).Format("2006-01-02 15:04:05-07:00") }
		age := func(label string, created, used time.Duration) {
			t.Helper()
			key := c.key(label)
			modelstest.Exec(t, c.databaseURL, fmt.Sprintf("UPDATE api_keys SET created_at = '%s' WHERE id = '%s'", at(created), key.ID))
			if used > 0 {
				modelstest.Exec(t, c.databaseURL, fmt.Sprintf("INSERT INTO api_key_last_uses (api_key_id, used_at) VALUES ('%s', '%s')", key.ID, at(used)))
			}
		}
		age("new", 6*day, 0)
		age("never", 8*day, 0)
		age("busy", 100*day, day)
		age("asleep", 100*day, 91*day)
		age("old", 366*day, day)
		age("ancient", 400*day, 100*day)

		full := c.get("/api-keys").is(http.StatusOK)
		for name, want := range map[string]struct {
			href string
			keys []string
		}{
			"1 key unused since it was generated":                                  {"/api-keys?show=never-used", []string{"never"}},
			"2 keys have not been used for 90 days":                                {"/api-keys?show=unused", []string{"asleep", "ancient"}},
			"2 keys have no expiry and no restrictions, and are older than a year": {"/api-keys?show=unrestricted", []string{"old", "ancient"}},
		} {
			full.one("link", name).with("href", want.href)
			list := v.get(want.href).is(http.StatusOK)
			list.one("link", "Show all keys").with("href", "/api-keys")
			if !strings.Contains(list.text(), "6 of 100") {
				t.Error("the count is not of all keys")
			}
			table := list.one("table", "Active API keys")
			for _, label := range []string{"new", "never", "busy", "asleep", "old", "ancient"} {
				shown := false
				for _, one := range want.keys {
					shown = shown || one == label
				}
				if found := strings.Contains(" "+table.text()+" ", " "+label+" "); found != shown {
					t.Errorf("%s: %s is shown: %v", want.href, label, found)
				}
			}
			// The list refreshes itself with the filter, and sorting keeps it.
			if !strings.Contains(list.body, `hx-get="/api-keys/changes?`+strings.TrimPrefix(want.href, "/api-keys?")+`"`) {
				t.Error("the list forgets the filter")
			}
		}
		v.get("/api-keys?show=other").is(http.StatusOK).none("link", "Show all keys")

		full.one("link", "You and 1 other person have no two-step verification").with("href", "/people?show=no-two-step")
		people := v.get("/people?show=no-two-step").is(http.StatusOK)
		people.says("Only people without two-step verification.")
		people.says("second-" + c.email)
		modelstest.Must(t, c.store.People.SetDisabled(t.Context(), second.Email, true))
		c.get("/api-keys").one("link", "Turn on two-step verification for yourself").with("href", "/account#two-step")
		if strings.Contains(v.get("/people?show=no-two-step").text(), second.Email) {
			t.Error("the list has a disabled user")
		}
	})
}

// Each reader dismisses hints alone, for 30 days. Other hints are shown meanwhile.
func TestHintsAreDismissedForAMonth(t *testing.T) {
	clocked(t, func(t *testing.T, s *site, clock *modelstest.Clock) {
		for _, as := range []voice{{}, {htmx: true}} {
			c := s.customer(t)
			v := as.of(t, c.visitor)
			const hint, own = "1 key unused since it was generated", "Turn on two-step verification for yourself"
			c.get("/api-keys").one("link", own)
			dismiss := func() {
				t.Helper()
				look := c.get("/api-keys").one("region", "Worth a look")
				fields := url.Values{}
				for node := range look.node.Descendants() {
					if input := (element{t, node}); input.node.Data == "input" {
						fields.Add(input.attr("name"), input.attr("value"))
					}
				}
				answer := v.post(look.one("button", "Dismiss for 30 days").form().attr("action"), fields)
				if !as.htmx {
					answer.redirects("/api-keys")
				} else if !strings.Contains(answer.is(http.StatusOK).body, "#worth-a-look") {
					t.Errorf("the hints stay: %s", answer.body)
				}
			}
			dismiss()
			c.get("/api-keys").none("region", "Worth a look")
			c.key("idle")
			clock.Advance(29 * value.Day)
			c.signIn(c.email, password)
			page := c.get("/api-keys")
			page.one("link", hint)
			page.none("link", own)
			clock.Advance(value.Day)
			c.signIn(c.email, password)
			c.get("/api-keys").one("link", own)
			// On a shared browser the next user sees them.
			dismiss()
			c.get("/api-keys").none("region", "Worth a look")
			other := s.customer(t)
			c.signIn(other.email, password)
			c.get("/api-keys").one("link", own)
		}
	})
}

func TestFirstStepsTickThemselvesOff(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		done := func(want int) {
			t.Helper()
			page := v.get("/api-keys").is(http.StatusOK)
			page.one("link", "Create an agent").with("href", "/agents")
			page.one("link", "Generate an API key")
			page.one("link", "Send the first request").with("href", "/integrate")
			if got := strings.Count(page.body, " data-done>"); got != want || strings.Count(page.body, `aria-current="step"`) != 1 {
				t.Errorf("%d steps are done, want %d:\n%s", got, want, page.body)
			}
		}
		done(0)
		modelstest.Value(c.store.Agents.Create(t.Context(), c.account.ID, agents.NewAgent{Name: "Front desk", FormID: uuid.New()}, record.Operator()))(t)
		done(1)
		key, secret := c.newKey("prod", uuid.Nil)
		done(2)
		seen := c.fragments().get("/api-keys/changes").is(http.StatusOK)
		_, err := c.store.API.Authenticate(t.Context(), secret, keys.Source{})
		modelstest.Must(t, err)
		changed := c.fragments().get("/api-keys/changes?seen=" + seen.byID("api-key-seen").attr("value"))
		changed.none("link", "Send the first request") // the list has fetched it
		v.get("/api-keys").none("link", "Create an agent")
		// They do not come back.
		modelstest.Value(c.store.Keys.Revoke(t.Context(), c.account.ID, key.ID, "", record.Operator()))(t)
		v.get("/api-keys").none("link", "Create an agent")
	})
}
