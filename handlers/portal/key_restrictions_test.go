package portal_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/usage"
	"portal/models/value"
	"portal/templates"
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

// A key for reports says so in its row, and offers neither agents nor limits.
func TestGeneratingAKeyForReports(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		agent := c.agent("Front desk")
		access := c.get("/api-keys").is(http.StatusOK).one("group", "Access")
		if !access.one("radio", "Agents and tokens").has("checked") || access.one("radio", "Reports only").has("checked") {
			t.Error("another access is chosen")
		}
		refused := v.post("/api-keys", restricted("access", "reports", "networks", "here")).is(http.StatusUnprocessableEntity)
		if !refused.one("radio", "Reports only").has("checked") || !refused.byID("kind").has("open") {
			t.Error("the access is lost")
		}
		refused.one("group", "Agents") // for another choice
		v.post("/api-keys", restricted("access", "all")).is(http.StatusUnprocessableEntity)
		v.post("/api-keys", restricted("access", "reports", "agents", "some")).is(http.StatusUnprocessableEntity)
		// The form hides what was entered before, so it refuses nothing.
		shown := v.post("/api-keys", restricted("access", "reports", "agents", "only", "agent", agent.ID.String(), "calls", "many")).is(http.StatusOK)
		if !strings.Contains(shown.body, "/api/activity") || strings.Contains(shown.body, "/api/widget/token") {
			t.Error("the example does not read reports")
		}
		key := c.keys()[0]
		if !key.OnlyReports() || key.Agents != nil {
			t.Errorf("access %q", key.Access)
		}
		if row := c.get("/api-keys").byID("api-key-" + key.ID.String()); !strings.Contains(row.text(), "Reports only") {
			t.Errorf("the row says %q", row.text())
		}
		form := c.get("/api-keys/" + key.ID.String() + "/restrictions").is(http.StatusOK)
		form.none("group", "Agents")
		c.post("/api-keys/"+key.ID.String()+"/restrictions", url.Values{"expires": {"never"}, "networks": {"192.0.2.0/24\u200b, 198.51.100.7;2001:db8::/32 203.0.113.7\t203.0.113.8"}}).redirects("/api-keys#menu-" + key.ID.String())
	})
}

func TestGeneratingAKeyWithRestrictions(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		front, back := c.agent("Front desk"), c.agent("Back office")
		page := c.get("/api-keys").is(http.StatusOK)
		if details := page.byID("restrictions"); details.node.Data != "details" || details.has("open") {
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
		if end := tomorrow.Truncate(value.Day).Add(value.Day); !first.ExpiresAt.Equal(end) {
			t.Errorf("it expires at %s, want %s", first.ExpiresAt, end)
		}
		if !slices.Equal(first.Agents, []uuid.UUID{front.ID}) || !slices.Equal(first.Networks,
			[]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::1/128")}) {
			t.Errorf("it has %v", first)
		}
		if left := time.Until(*second.ExpiresAt); left < 89*value.Day || left > 90*value.Day || second.Agents != nil || second.Networks != nil {
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
		"end of time":       {[]string{"expires", "date", "expiry_date", "9999-12-31"}, "Expiry date", "Enter a date before 9999-12-31."},
		"unknown option":    {[]string{"expires", "31"}, "Expires", "Choose when"},
		"no agent":          {[]string{"agents", "only"}, "Agents", "at least one agent"},
		"unknown agents":    {[]string{"agents", "zzz"}, "Agents", "Choose All agents"},
		"empty agents":      {[]string{"agents", ""}, "Agents", "Choose All agents"},
		"foreign agent":     {[]string{"agents", "only", "agent", uuid.NewString()}, "Agents", "was removed"},
		"not an agent":      {[]string{"agents", "only", "agent", "x"}, "Agents", "was removed"},
		"host bits":         {[]string{"networks", "192.0.2.7/24"}, "Allowed networks", "Did you mean 192.0.2.0/24"},
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
					alert.describes(control)
					page.byID("restrictions").with("open", "")
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
		for _, wrong := range []struct{ networks, alert string }{{"", "future"}, {"localhost", "not an IP address"}} {
			fields := restricted("expires", "date", "expiry_date", "2020-01-01", "agents", "only", "networks", wrong.networks)
			fields.Set("label", " ")
			page := c.post("/api-keys", fields).is(http.StatusUnprocessableEntity)
			for _, alert := range []string{"Enter a label.", wrong.alert, "future", "at least one agent"} {
				page.one("alert", alert)
			}
		}
		several := restricted("agents", "only", "networks", "here\nthere\n192.0.2.7/24", "expires", "date", "expiry_date", "soon")
		page := c.post("/api-keys", several).is(http.StatusUnprocessableEntity)
		for _, alert := range []string{`"here", "there" are not`, "Did you mean 192.0.2.0/24?", "Enter a date", "at least one agent"} {
			page.one("alert", alert)
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
		page.says("Added 192.0.2.7, the address of this browser")
		if _, selected := page.options("Expires"); selected != "30 days" {
			t.Errorf("Expires is %q", selected)
		}
		again := v.post("/api-keys", restricted("networks", "192.0.2.7", "add_address", "yes")).is(http.StatusOK)
		again.one("textbox", "Allowed networks").exactly("192.0.2.7")
		v.headers = []string{"X-Forwarded-For: 203.0.113.9"}
		v.post("/api-keys", restricted("add_address", "yes")).is(http.StatusOK).says("a proxy that the portal does not know")
		v.headers = nil
	})
	if len(c.keys()) > 0 {
		t.Error("a key was generated")
	}
}

func TestMaximumLifetimeLeavesOutLongerOptions(t *testing.T) {
	onSiteWith(t, models.Options{KeyMaxLifetime: 45 * value.Day}, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.get("/settings").is(http.StatusOK).says("A new key expires within 45 days. All active keys expire.")
		unlimited := modelstest.Open(t, s.databaseURL, models.Options{})
		old, _, err := unlimited.Keys.Generate(t.Context(), c.account.ID, keys.NewKey{Label: "old", FormID: uuid.New()}, record.Operator())
		modelstest.Must(t, err)
		c.get("/settings").is(http.StatusOK).says("1 active key has no expiry")
		c.revoke(old)
		page := c.get("/api-keys").is(http.StatusOK)
		if all, selected := page.options("Expires"); !slices.Equal(all, []string{"30 days", "On a date"}) || selected != "30 days" {
			t.Errorf("Expires offers %q, %q", all, selected)
		}
		page.says("At most 45 days from now")
		page.byID("restrictions").none("combobox", "Expires") // it is not folded
		generated := c.post("/api-keys", restricted()).is(http.StatusOK)
		generated.says("Expires "+templates.LastDay(*c.keys()[0].ExpiresAt).Format("2 Jan 2006"), "Reaches all agents, from any address.")
		if expiresAt := c.keys()[0].ExpiresAt; expiresAt == nil {
			t.Error("the key never expires")
		}
		for _, expires := range []string{"never", "90"} {
			c.post("/api-keys", restricted("expires", expires)).is(http.StatusUnprocessableEntity).one("alert", "expire")
		}
	})
	// Often the end of no day is within a short maximum.
	for limit, options := range map[time.Duration][]string{12 * time.Hour: {"12 hours"}, value.Day: {"On a date"}} {
		clock := modelstest.NewClock(time.Now())
		s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{Now: clock.Now, KeyMaxLifetime: limit})
		c := s.customer(t)
		page := c.get("/api-keys").is(http.StatusOK)
		if all, _ := page.options("Expires"); !slices.Equal(all, options) {
			t.Errorf("with a maximum of %s, Expires offers %q", limit, all)
		}
		c.post("/api-keys", page.saved("label", "production", "form_id", page.formID())).is(http.StatusOK)
		key := c.keys()[0]
		path := "/api-keys/" + key.ID.String() + "/restrictions"
		page = c.get(path)
		c.post(path, page.saved("note", "kept")).redirects("/api-keys#menu-" + key.ID.String())
		if same := c.keys()[0]; same.Note != "kept" || !same.ExpiresAt.Equal(*key.ExpiresAt) {
			t.Errorf("the expiry changed from %s to %s", key.ExpiresAt, same.ExpiresAt)
		}
		if limit < value.Day {
			options = append([]string{"On a date"}, options...)
		}
		if all, _ := page.options("Expires"); !slices.Equal(all, options) {
			t.Errorf("with a maximum of %s, Expires of a key offers %q", limit, all)
		}
		latest := c.get(path).saved()
		latest.Set("expires", templates.ExpiresLatest)
		clock.Advance(time.Minute)
		if c.post(path, latest).redirects("/api-keys#menu-" + key.ID.String()); !c.keys()[0].ExpiresAt.After(*key.ExpiresAt) {
			t.Errorf("the expiry stays at %s", key.ExpiresAt)
		}
	}
}

// saved returns the fields that restrict a key, as a browser sends them, and more fields.
func (a answer) saved(more ...string) url.Values {
	a.t.Helper()
	fields := url.Values{
		"networks":    {a.written("Allowed networks")},
		"expiry_date": {a.one("textbox", "Expiry date").attr("value")},
	}
	for node := range a.one("combobox", "Expires").node.Descendants() {
		if option := (element{a.t, node}); node.Data == "option" && option.has("selected") {
			fields.Set("expires", option.attr("value"))
		}
	}
	if version, ok := a.named("made_from"); ok {
		fields.Set("made_from", version.attr("value"))
	}
	for i := 0; i < len(more); i += 2 {
		fields.Set(more[i], more[i+1])
	}
	for _, role := range []string{"radio", "checkbox"} {
		for _, control := range a.all(role, "") {
			if control.has("checked") {
				fields.Add(control.attr("name"), control.attr("value"))
			}
		}
	}
	return fields
}

// written returns the text of a textarea with its lines.
func (a answer) written(name string) string {
	a.t.Helper()
	area := a.one("textbox", name).node
	if area.FirstChild == nil {
		return ""
	}
	return area.FirstChild.Data
}

func TestPageOfRestrictionsChangesWhatIsChanged(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		front := c.agent("Front desk")
		back := c.agent("Back office")
		c.post("/api-keys", restricted("expires", "90", "agents", "only", "agent", front.ID.String(),
			"networks", "192.0.2.0/24\n2001:db8::1")).is(http.StatusOK)
		key := c.keys()[0]
		row := c.get("/api-keys")
		row.says("Expires "+key.ExpiresAt.UTC().Format("2 Jan 2006"), "1 agent", "2 networks")
		path := row.one("link", "Restrictions").attr("href")

		page := c.get(path).is(http.StatusOK)
		page.one("heading", "Restrictions of production")
		page.one("button", "Cancel")
		if preview := `<noscript><button class="button" formaction="` + path + `/preview">`; !strings.Contains(page.body, preview) {
			t.Error("without JavaScript there is no preview")
		}
		page.one("button", "Save restrictions").parent().parent().says("When you save, requests")
		for i, address := range []string{"192.0.2.7", "198.51.100.9"} {
			s.store.Usage.Add(key, usage.NewSource(netip.MustParseAddr(address), "server/1.0"), time.Now(), int64(i+1), 0)
		}
		s.store.Agents.Used(c.account.ID, front.ID, key.ID)
		c.get(path).says("was used with these agents: Front desk, last used just now When you save, requests")
		c.get(path).says("was used from: Refused: 198.51.100.9 (server/1.0), 2 requests, last seen just now 192.0.2.7 (server/1.0), 1 request,")
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			preview := v.post(path+"/preview", page.saved("networks", "198.51.100.0/24")).is(http.StatusOK)
			preview.says("1 source, 1 of 3 requests, would be refused. In the last 30 days", "was used from: Refused: 192.0.2.7 (server/1.0), 1 request, last seen just now 198.51.100.9")
			left := page.saved()
			left.Set("agent", back.ID.String())
			v.post(path+"/preview", left).says("1 source, 2 of 3 requests, and 1 agent would be refused.", "these agents: Refused: Front desk, last used just now")
			for _, networks := range []string{"", "here"} {
				preview = v.post(path+"/preview", page.saved("networks", networks)).is(http.StatusOK)
				preview.says("was used from: 198.51.100.9")
				preview.none("alert", "not an IP address")
			}
		})
		s.store.Usage.Add(key, usage.NewSource(netip.MustParseAddr("2001:db8::7"), "server/1.0"), time.Now(), 3, 0)
		c.get(path).says("was used from: May be refused: 2001:db8::/64 (server/1.0), 3 requests, last seen just now Refused: 198.51.100.9")
		activities := len(c.get("/activity").all("listitem", ""))
		c.post(path, page.saved("note", page.written("Note"))).redirects("/api-keys#menu-" + key.ID.String())
		if same := c.keys()[0]; !same.ExpiresAt.Equal(*key.ExpiresAt) || !slices.Equal(same.Agents, key.Agents) ||
			!slices.Equal(same.Networks, key.Networks) || len(c.get("/activity").all("listitem", "")) != activities {
			t.Errorf("saving an untouched page changed %v to %v", key.Restrictions(), same.Restrictions())
		}

		fields := page.saved()
		fields.Set("expires", "never")
		fields.Set("agents", "all")
		fields.Set("networks", "198.51.100.7")
		fields.Set("note", " for the\r\nshop ")
		added := c.post(path, url.Values{"networks": {"198.51.100.7"}, "note": {"kept"}, "add_address": {"yes"}}).is(http.StatusOK)
		added.one("textbox", "Allowed networks").exactly("198.51.100.7 192.0.2.7")
		added.one("textbox", "Note").exactly("kept")
		c.post(path, fields).redirects("/api-keys#menu-" + key.ID.String())
		changed := c.keys()[0]
		if r := changed.Restrictions(); r.ExpiresAt != nil || r.Agents != nil || len(r.Networks) != 1 || changed.Note != "for the\nshop" {
			t.Errorf("it has %v and the note %q", r, changed.Note)
		}
		c.get("/activity").says("changed the restrictions", "→ never", "Front desk ("+front.ID.String()+") → all", "→ 198.51.100.7/32")
	})
}

// Two users open the page of a key. The first one narrows the key, then the second one saves a
// note.
func TestStaleFormOfRestrictionsDoesNotWidenAKey(t *testing.T) {
	onVoiceSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		front := c.agent("Front desk")
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			key := c.key("production")
			path, saved := "/api-keys/"+key.ID.String()+"/restrictions", "/api-keys#menu-"+key.ID.String()
			page := c.get(path).is(http.StatusOK)
			narrowed := page.saved("expires", "30", "networks", "192.0.2.0/24", "agent", front.ID.String(), "note", "the shop", "calls", "3")
			narrowed.Set("agents", "only")
			for range 2 { // a double click
				v.post(path, narrowed).redirects(saved)
			}
			stale := page.saved("note", "ask Bob", "expires", "90")
			for _, way := range []string{"/preview", ""} {
				wrong := page.saved("networks", "here")
				kept := v.post(path+way, wrong)
				if kept.hidden("made_from") != page.hidden("made_from") {
					t.Errorf("after %q, the form is made from another version", way)
				}
			}
			refused := v.post(path, stale).is(http.StatusConflict)
			alert := refused.one("alert", "This key was changed after you opened the form, so nothing was saved.")
			alert.with("autofocus", "").says("Expires "+templates.LastDay(*c.keys()[0].ExpiresAt).Format(time.DateOnly), "Agents Front desk",
				"Allowed networks 192.0.2.0/24", "Calls at a time 3 Minutes a call No limit Minutes a month No limit", "Note the shop")
			refused.one("textbox", "Note").exactly("ask Bob")
			if _, expires := refused.options("Expires"); expires != "90 days" || !refused.one("radio", "All agents").has("checked") {
				t.Error("the input is lost")
			}
			if same := c.keys()[0]; same.Note != "the shop" || len(same.Agents) != 1 || len(same.Networks) != 1 || same.ExpiresAt == nil {
				t.Errorf("the stale form made %+v", same)
			}
			v.post(path, refused.saved("note", refused.written("Note"))).redirects(saved)
			if changed := c.keys()[0]; changed.Note != "ask Bob" || changed.Agents != nil {
				t.Errorf("saving again made %+v", changed)
			}
		})
	})
}

func TestPageOfRestrictionsRefusesWrongValuesAndOtherKeys(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, stranger := s.customer(t), s.customer(t)
		key := c.key("production")
		path := "/api-keys/" + key.ID.String() + "/restrictions"
		agent := c.agent("Front desk").ID.String()
		c.post(path, url.Values{"agents": {"only"}, "agent": {agent}}).redirects("/api-keys#menu-" + key.ID.String())
		for _, test := range []struct {
			name, alert string
			fields      url.Values
		}{
			{"Agents", "Choose All agents", url.Values{"expires": {"never"}, "agents": {"zzz"}, "agent": {agent}, "networks": {""}, "note": {"kept"}}},
			{"Note", "at most 500", url.Values{"note": {strings.Repeat("é", 501)}}},
			{"Allowed networks", "not an IP address", url.Values{"networks": {"example.com"}, "note": {"kept"}}},
			{"Expiry date", "future", url.Values{"expires": {"date"}, "expiry_date": {"2020-01-01"}, "note": {"kept"}}},
		} {
			page := c.post(path, test.fields).is(http.StatusUnprocessableEntity)
			role := "textbox"
			if test.name == "Agents" {
				role = "group"
			}
			if !page.one("radio", "Only these").has("checked") || !page.one("checkbox", "Front desk").has("checked") {
				t.Error("the agents are lost")
			}
			control := page.one(role, test.name)
			page.one("alert", test.alert).describes(control)
			page.one("textbox", "Note").exactly(test.fields.Get("note"))
		}
		wrong := url.Values{"expires": {"date"}, "expiry_date": {"soon"}, "agents": {"zzz"}, "networks": {"example.com"}, "note": {strings.Repeat("é", 501)}}
		page := c.post(path, wrong).is(http.StatusUnprocessableEntity)
		for _, alert := range []string{"Enter a date", "Choose All agents", "not an IP address", "at most 500"} {
			page.one("alert", alert)
		}
		wrong = url.Values{"expires": {"date"}, "expiry_date": {"2020-01-01"}, "agents": {"only"}, "networks": {"example.com"}, "note": {strings.Repeat("é", 501)}}
		page = c.post(path, wrong).is(http.StatusUnprocessableEntity)
		for _, alert := range []string{"future", "at least one agent", "not an IP address", "at most 500"} {
			page.one("alert", alert)
		}
		if same := c.keys()[0]; same.Note != "" || same.ExpiresAt != nil || same.Networks != nil || len(same.Agents) != 1 {
			t.Errorf("a refused form changed it to %v", same)
		}
		stranger.get(path).is(http.StatusNotFound)
		stranger.post(path, url.Values{"note": {"x"}}).is(http.StatusNotFound)
		c.revoke(key)
		c.get(path).redirects("/api-keys")
		c.post(path, url.Values{"note": {"x"}}).redirects("/api-keys")
		c.get("/api-keys").says("was already revoked")
	})
}

func TestExpiringKeyIsOfferedRotationAndIsThenListedAsExpired(t *testing.T) {
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{Now: now})
	c := s.customer(t)
	c.post("/api-keys", restricted("expires", "30")).is(http.StatusOK)
	key := c.keys()[0]
	c.get("/api-keys").says("Expires " + templates.LastDay(*key.ExpiresAt).Format("2 Jan 2006"))
	ahead.Store(int64(27*value.Day + time.Hour))
	c.signIn(c.email, password)
	page := c.get("/api-keys").is(http.StatusOK)
	page.says("Expires in 3 days")
	if links := page.all("link", "Rotate"); len(links) != 2 || links[0].attr("href") != rotationOf(key) {
		t.Errorf("%d links lead to the rotation, want one beside the badge and one in the menu", len(links))
	}
	ahead.Store(int64(31 * value.Day))
	c.signIn(c.email, password)
	c.get("/api-keys").says("No API keys yet")
	rows := c.get("/api-keys/revoked").one("table", "Revoked API keys").all("row", "")
	rows[1].one("cell", "production")
	rows[1].one("cell", "Expired")
	c.fragments().get("/api-keys/"+key.ID.String()+"/first-use").is(http.StatusOK).one("status", "has expired")
	for _, path := range []string{"/name", "/restrictions", "/rotation", "/revocation"} {
		c.get("/api-keys/" + key.ID.String() + path).redirects("/api-keys")
		c.get("/api-keys").says("has expired")
	}
	c.post("/api-keys/"+key.ID.String()+"/revocation", url.Values{}).redirects("/api-keys")
	c.get("/api-keys").says("has expired")
	c.get("/api-keys/revoked").one("table", "Revoked API keys").one("cell", "Expired")
}

func TestReasonOfARevocation(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			for _, way := range []string{"", "/rotation"} {
				key, active := c.key("production"), len(c.keys())
				if way != "" {
					c.newKey("production", key.ID)
					active++
				}
				path := "/api-keys/" + key.ID.String() + way + "/revocation"
				v.get(path).is(http.StatusOK).one("textbox", "Reason")
				long := strings.Repeat("x", 501)
				refused := v.post(path, url.Values{"reason": {long}}).is(http.StatusUnprocessableEntity)
				field := refused.one("textbox", "Reason")
				field.exactly(long)
				refused.one("alert", "at most 500").describes(field)
				if refused.one("button", "Confirm revoke"); len(c.keys()) != active {
					t.Fatal("the key was revoked")
				}
				reason := "the laptop was stolen " + key.LastFour
				v.post(path, url.Values{"reason": {reason}})
				c.get("/api-keys/revoked").one("table", "Revoked API keys").all("cell", "")[3].says("Reason: " + reason)
				c.get("/activity").says("Reason: " + reason)
			}
		})
	})
}
