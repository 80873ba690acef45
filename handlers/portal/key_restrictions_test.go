package portal_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
)

// restricted returns the fields of the form for a new key with these restrictions.
func restricted(more ...string) url.Values {
	fields := generation("production", uuid.NewString())
	for i := 0; i < len(more); i += 2 {
		fields.Add(more[i], more[i+1])
	}
	return fields
}

// options returns the texts of the options of a combobox, and the chosen one.
func (e element) options(name string) (all []string, selected string) {
	e.t.Helper()
	for node := range e.one("combobox", name).node.Descendants() {
		if option := (element{e.t, node}); node.Data == "option" {
			all = append(all, option.text())
			if option.has("selected") {
				selected = option.text()
			}
		}
	}
	return all, selected
}

func TestGeneratingAKeyWithRestrictions(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		front, back := c.agent("Front desk"), c.agent("Back office")
		page := c.get("/api-keys").is(http.StatusOK)
		details, ok := page.byID("restrictions")
		if !ok || details.node.Data != "details" || details.has("open") {
			t.Error("the restrictions are not collapsed")
		}
		all, selected := page.options("Expires")
		if want := []string{"Never", "30 days", "90 days", "1 year", "On a date"}; !slices.Equal(all, want) || selected != "Never" {
			t.Errorf("Expires offers %q, %q", all, selected)
		}
		page.one("textbox", "Expiry date")
		agents := page.one("group", "Agents")
		if !agents.one("radio", "All agents").has("checked") || agents.one("radio", "Only these").has("checked") {
			t.Error("not all agents are chosen")
		}
		agents.one("checkbox", "Back office")
		page.one("textbox", "Allowed networks")
		page.one("button", "Add my address")

		tomorrow := time.Now().UTC().AddDate(0, 0, 1)
		c.post("/api-keys", restricted("expires", "date", "expiry_date", tomorrow.Format(time.DateOnly), "agents", "only",
			"agent", front.ID.String(), "networks", "192.0.2.0/24\r\n\r\n 2001:db8::1 \r\n")).is(http.StatusOK)
		c.post("/api-keys", restricted("expires", "90", "agents", "all", "agent", back.ID.String(), "networks", " ")).is(http.StatusOK)
		c.post("/api-keys", restricted()).is(http.StatusOK)
		keys := c.keys()
		first, second, third := keys[2].Restrictions(), keys[1].Restrictions(), keys[0].Restrictions()
		if end := tomorrow.Truncate(models.Day).Add(models.Day); !first.ExpiresAt.Equal(end) {
			t.Errorf("it expires at %s, want %s", first.ExpiresAt, end)
		}
		if !slices.Equal(first.Agents, []uuid.UUID{front.ID}) || !slices.Equal(first.Networks,
			[]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::1/128")}) {
			t.Errorf("it has %v", first)
		}
		if left := time.Until(*second.ExpiresAt); left < 89*models.Day || left > 90*models.Day || second.Agents != nil || second.Networks != nil {
			t.Errorf("it has %v", second)
		}
		if third.ExpiresAt != nil || third.Agents != nil || third.Networks != nil {
			t.Errorf("a label alone gives %v", third)
		}
	})
}

func TestWrongRestrictionsGenerateNothingAndAreKept(t *testing.T) {
	cases := map[string]struct {
		fields         []string
		control, alert string
	}{
		"no date":           {[]string{"expires", "date", "expiry_date", ""}, "Expiry date", "Enter a date"},
		"not a date":        {[]string{"expires", "date", "expiry_date", "2026-02-30"}, "Expiry date", "Enter a date"},
		"past date":         {[]string{"expires", "date", "expiry_date", "2020-01-01"}, "Expiry date", "future"},
		"end of time":       {[]string{"expires", "date", "expiry_date", "9999-12-31"}, "Expiry date", "Enter a date"},
		"unknown option":    {[]string{"expires", "31"}, "Expires", "Choose when"},
		"no agent":          {[]string{"agents", "only"}, "Agents", "at least one agent"},
		"foreign agent":     {[]string{"agents", "only", "agent", uuid.NewString()}, "Agents", "was removed"},
		"not an agent":      {[]string{"agents", "only", "agent", "x"}, "Agents", "was removed"},
		"host bits":         {[]string{"networks", "192.0.2.7/24"}, "Allowed networks", "Enter 192.0.2.0/24"},
		"one of many lines": {[]string{"networks", "192.0.2.7\nlocalhost"}, "Allowed networks", "not an IP address"},
	}
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		agent := c.agent("Front desk")
		for name, test := range cases {
			t.Run(name, func(t *testing.T) {
				bothVoices(t, func(t *testing.T, as voice) {
					fields := restricted(test.fields...)
					if test.control != "Agents" {
						fields["agents"], fields["agent"] = []string{"only"}, []string{agent.ID.String()}
					}
					page := as.of(t, c.visitor).post("/api-keys", fields).is(http.StatusUnprocessableEntity)
					alert := page.one("alert", test.alert)
					role := map[string]string{"Expires": "combobox", "Agents": "group"}[test.control]
					if role == "" {
						role = "textbox"
					}
					control := page.one(role, test.control)
					if !strings.Contains(control.attr("aria-describedby"), alert.attr("id")) {
						t.Error("the alert does not describe the control")
					}
					if details, _ := page.byID("restrictions"); !details.has("open") {
						t.Error("the restrictions are collapsed")
					}
					if page.one("textbox", "Label").attr("value") != "production" || !page.one("radio", "Only these").has("checked") ||
						page.one("checkbox", "Front desk").has("checked") != (test.control != "Agents") {
						t.Error("the input is lost")
					}
					switch test.control {
					case "Expiry date":
						if control.attr("value") != fields.Get("expiry_date") {
							t.Error("the date is lost")
						}
					case "Allowed networks":
						control.says(strings.Fields(fields.Get("networks"))...)
					}
				})
			})
		}
		c.get("/api-keys").says("No API keys yet")
	})
}

func TestAddMyAddressSavesNothing(t *testing.T) {
	s := sqliteSite(t, httpBase)
	c := s.customer(t)
	bothVoices(t, func(t *testing.T, as voice) {
		v := as.of(t, c.visitor)
		page := v.post("/api-keys", restricted("networks", "198.51.100.0/24", "expires", "30", "add_address", "yes")).is(http.StatusOK)
		page.one("textbox", "Allowed networks").exactly("198.51.100.0/24 192.0.2.7")
		page.one("textbox", "Label")
		page.one("status", "Added 192.0.2.7, the address of this browser")
		if _, selected := page.options("Expires"); selected != "30 days" {
			t.Errorf("Expires is %q", selected)
		}
		again := v.post("/api-keys", restricted("networks", "192.0.2.7", "add_address", "yes")).is(http.StatusOK)
		again.one("textbox", "Allowed networks").exactly("192.0.2.7")
		v.headers = []string{"X-Forwarded-For: 203.0.113.9"}
		v.post("/api-keys", restricted("add_address", "yes")).is(http.StatusOK).one("status", "a proxy that the portal does not know")
		v.headers = nil
	})
	if len(c.keys()) > 0 {
		t.Error("a key was generated")
	}
}

func TestMaximumLifetimeLeavesOutLongerOptions(t *testing.T) {
	onSiteWith(t, models.Options{KeyMaxLifetime: 45 * models.Day}, func(t *testing.T, s *site) {
		c := s.customer(t)
		page := c.get("/api-keys").is(http.StatusOK)
		if all, selected := page.options("Expires"); !slices.Equal(all, []string{"30 days", "On a date"}) || selected != "30 days" {
			t.Errorf("Expires offers %q, %q", all, selected)
		}
		page.says("At most 45 days from now")
		c.post("/api-keys", restricted()).is(http.StatusOK)
		if expiresAt := c.keys()[0].ExpiresAt; expiresAt == nil {
			t.Error("the key never expires")
		}
		for _, expires := range []string{"never", "90"} {
			c.post("/api-keys", restricted("expires", expires)).is(http.StatusUnprocessableEntity).one("alert", "expire")
		}
	})
}
