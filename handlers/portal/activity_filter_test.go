package portal_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/value"
)

func TestActivityFilter(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		for i := range 60 {
			c.agent(fmt.Sprintf("agent %02d", i))
		}
		c.key("production")
		c.key("Cafe\u0301")

		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			keys := v.get("/activity?kind=api_key.generated").is(http.StatusOK)
			items := keys.activities(2)
			items[1].says("generated the API key production")
			for _, search := range []string{"caf\u00e9", "cafe\u0301"} {
				v.get("/activity?q=" + url.QueryEscape(search)).activities(1)
			}

			newest := v.get("/activity?kind=agent.created").is(http.StatusOK)
			newest.none("link", "Newest")
			newest.activities(50)
			older := v.get(newest.one("link", "Older").attr("href")).is(http.StatusOK)
			older.activities(10)
			older.none("link", "Older")
			older.one("link", "Newest").with("href", "/activity?kind=agent.created")
			v.get("/activity?kind=password.reset").is(http.StatusOK).says("No matching activity")
			v.get("/activity?kind=").is(http.StatusOK).says("agent 59")
			for _, query := range []string{"kind=nothing", "before=yesterday", "before="} {
				v.get("/activity?" + query).is(http.StatusNotFound)
			}
			v.get("/activity?before=" + uuid.NewString()).is(http.StatusOK)
			v.get("/activity?kind=keys").activities(2)
			if items := activityItems(v.get("/activity?kind=sessions").is(http.StatusOK)); len(items) == 0 || !strings.Contains(items[0].text(), "signed in") {
				t.Error("the sign-in is not listed")
			}
		})
		c.get("/activity?kind=agent.created").byID("activity-kind").chosen("agent.created")
	})
}

func TestActivityShowsRefusedRequestsOfRevokedKey(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		for _, refusals := range []int{0, 1, 12} {
			key, secret := c.newKey(fmt.Sprint("tried ", refusals), uuid.Nil)
			c.revoke(key)
			for range refusals {
				_, _ = s.store.API.Authenticate(t.Context(), secret, keys.Source{})
			}
		}
		bothVoices(t, func(t *testing.T, as voice) {
			items := activityItems(as.of(t, c.visitor).get("/activity?kind=api_key.revoked").is(http.StatusOK))
			items[0].says("revoked the API key tried 12", "12 refused requests in the last hour")
			items[1].says("1 refused request in the last hour")
			if strings.Contains(items[2].text(), "refused") {
				t.Errorf("the activity of an unused key is %q", items[2].text())
			}
		})
	})
}

func TestActivityOfOneKey(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, other := s.customer(t), s.customer(t)
		key, secret := c.newKey("production", uuid.Nil)
		c.key("staging")
		c.revoke(key)
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			for _, query := range []string{"key=" + key.ID.String(), "q=PRODUCT", "q=" + key.LastFour, "q=nas_..." + key.LastFour} {
				v.get("/activity?" + query).activities(2)
			}
			v.get("/activity?q=%25").is(http.StatusOK).says("No matching activity")
			v.get("/activity?key=" + uuid.NewString()).is(http.StatusNotFound)
			as.of(t, other.visitor).get("/activity?key=" + key.ID.String()).is(http.StatusNotFound)
			// A pasted key does not reach a URL.
			filtered := v.post("/activity/filter", url.Values{"q": {secret}, "kind": {"keys"}})
			want := "/activity?kind=keys&q=" + key.LastFour
			if !as.htmx {
				filtered.redirects(want)
			} else {
				filtered.headed("HX-Replace-Url", want).activities(2)
			}
		})
		export := c.get("/activity/export?key=" + key.ID.String())
		if lines := strings.Count(export.body, "\r\n"); lines != 3 {
			t.Errorf("the export has %d lines, want 3", lines)
		}
	})
}

func TestActivityFilterOffersRevokedKeys(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, other := s.customer(t), s.customer(t)
		active, revoked := c.key("production"), c.key("leaked")
		c.revoke(revoked)
		other.revoke(other.key("foreign"))
		page := c.get("/activity?key=" + revoked.ID.String()).is(http.StatusOK)
		field := page.byID("activity-key")
		offered := map[string]string{} // the groups of the options, by the key's id
		for node := range field.node.Descendants() {
			option := element{t, node}
			if id := option.attr("value"); id != "" {
				offered[id] = option.parent().attr("label")
			}
		}
		field.chosen(revoked.ID.String())
		if want := map[string]string{active.ID.String(): "", revoked.ID.String(): "Revoked or expired"}; !maps.Equal(offered, want) {
			t.Errorf("offered: %v, want %v", offered, want)
		}
	})
}

func TestActivityIsFoundInEitherCase(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.newKey("ÜBER Straße", uuid.Nil)
		for query, want := range map[string]int{"über": 1, "u\u0308BER": 1, "STRASSE": 0, "uber": 0, "ÜBER 100%": 0} {
			if items := activityItems(c.get("/activity?q=" + url.QueryEscape(query)).is(http.StatusOK)); len(items) != want {
				t.Errorf("%q finds %d activities, want %d", query, len(items), want)
			}
		}
	})
}

func TestActivityOfADateRange(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		today := time.Now().UTC()
		date := func(days int) string { return today.AddDate(0, 0, days).Format(time.DateOnly) }
		for query, found := range map[string]bool{
			"from=" + date(-1) + "&to=" + date(1): true,
			"from=" + date(2):                     false,
			"to=" + date(-2):                      false,
			"from=yesterday":                      true, // ignored
			// Ignored: PostgreSQL has no such year.
			"from=0000-01-01": true,
			// Ignored: the day after it has a year of five digits.
			"to=9999-12-31": true,
			// For some users tomorrow has begun, and for others it is still yesterday.
			"from=" + date(1) + "&from_offset=1440": true,
			"to=" + date(-1) + "&to_offset=-1440":   true,
			"from=" + date(1) + "&from_offset=9999": false, // ignored
		} {
			if items := activityItems(c.get("/activity?" + query).is(http.StatusOK)); len(items) > 0 != found {
				t.Errorf("%s: %d activities are listed", query, len(items))
			}
		}
	})
}

func TestActivityOfOneActor(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.agent("Front desk")
		s.visitor(t).signIn(c.email, "wrong").is(http.StatusUnprocessableEntity)
		// A wrong password is recorded after the response.
		for recorded := 0; recorded == 0; time.Sleep(time.Millisecond) {
			refusals, err := s.store.Activity.List(t.Context(), c.account.ID, record.ActivityPage{Limit: 1, ActorKind: record.ActorVisitor})
			if err != nil {
				t.Fatal(err)
			}
			recorded = len(refusals)
		}
		users, err := s.store.People.List(t.Context(), c.account.ID, value.Page{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		for who, want := range map[string]string{
			users.Items[0].ID.String(): c.email + " signed in",
			"operator":                 "Operator created the agent",
			"visitor":                  "Someone entered an incorrect password for " + c.email,
		} {
			page := c.get("/activity?who=" + who).is(http.StatusOK)
			items := page.activities(1)
			items[0].says(want)
			page.one("heading", time.Now().UTC().Format("2 Jan 2006")+" UTC")
			page.one("link", "Download CSV").with("href", "/activity/export?who="+who)
		}
		c.get("/activity?who=" + uuid.NewString()).activities(0)
		expired := c.key("short")
		modelstest.Exec(t, s.databaseURL, "UPDATE api_keys SET expires_at = '2026-01-01 00:00:00+00:00' WHERE id = '"+expired.ID.String()+"'")
		modelstest.Must(t, s.store.Keys.RecordExpiry(t.Context()))
		c.get("/activity?who=system").is(http.StatusOK).activities(1)[0].says("The API key short")
	})
}

// The filter offers what can happen here, and what is chosen.
func TestActivityFilterLeavesOutWhatCannotBe(t *testing.T) {
	s := sqliteSite(t, httpBase)
	c := s.customer(t)
	what := func(path string) string { return c.get(path).is(http.StatusOK).one("combobox", "What").text() }
	for _, absent := range []string{"Ended calls", "Limits reached", "All webhook events", "Connected providers"} {
		if strings.Contains(what("/activity"), absent) {
			t.Errorf("it offers %q", absent)
		}
	}
	for path, want := range map[string]string{
		"/activity": "All key events", "/activity?kind=calls.ended": "Ended calls", "/activity?kind=webhooks": "All webhook events",
	} {
		if got := what(path); !strings.Contains(got, want) {
			t.Errorf("%s offers %q, which lacks %q", path, got, want)
		}
	}
}
