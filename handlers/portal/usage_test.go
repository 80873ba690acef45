package portal_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/usage"
	"portal/models/value"
)

func keyPage(key keys.Key) string { return "/api-keys/" + key.ID.String() }

func TestUsageOfTheAccountAndItsKeys(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, stranger := s.customer(t), s.customer(t)
		none := c.get("/usage").is(http.StatusOK)
		none.says("No keys yet")
		none.none("table", "Usage")
		production, leaked := c.key("=production"), c.key("leaked")
		unused := c.key("unused")
		server := usage.NewSource(netip.MustParseAddr("2001:db8::1"), "server/1.0 (x)")
		// The usage is added in the order of time, because a flush may write each hour on
		// its own.
		s.store.Usage.Add(production, server, time.Now().AddDate(0, 0, -20), 1000, 0)
		stranger.use(func() string { _, secret := stranger.newKey("foreign", uuid.Nil); return secret }())
		s.store.Usage.Add(production, keys.Source{}, time.Now(), 204, 0)
		c.revoke(leaked)
		s.store.Usage.Add(leaked, keys.Source{}, time.Now(), 1, 7)

		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			for query, want := range map[string][]string{
				"":            {"in the last 30 days", "=production " + production.Masked() + " 1,204 0", "All keys 1,205 7"},
				"?period=24h": {"in the last 24 hours", "=production " + production.Masked() + " 204 0", "All keys 205 7"},
				"?period=7d":  {"in the last 7 days", "leaked " + leaked.Masked() + " Revoked 1 7", "All keys 205 7"},
				"?period=90d": {"in the last 90 days", "unused " + unused.Masked() + " 0 0", "All keys 1,205 7"},
			} {
				page := v.get("/usage" + query).is(http.StatusOK)
				page.says(want[0], "7 refused")
				page.one("table", "Usage").says(want[1:]...)
				if strings.Contains(page.text(), "foreign") {
					t.Error("another account's key is shown")
				}
				page.one("link", strings.TrimPrefix(want[0], "in the last ")).with("aria-current", "true")
				page.one("link", "unused")
				page.one("columnheader", "Requests").with("aria-sort", "descending")
			}
			of := v.get("/usage?period=7d").is(http.StatusOK).one("link", "=production").attr("href")
			if want := keyPage(production) + "?period=7d"; of != want {
				t.Errorf("the key leads to %s, want %s", of, want)
			}
			page := c.get(of).is(http.StatusOK)
			page.says("204 requests in the last 7 days, all on ", production.ID.String())
			page.none("table", "Usage")
			page.byID(strings.TrimPrefix(page.one("button", "Copy key ID").attr("data-copy"), "#")).exactly(production.ID.String())
			rows := page.one("table", "Sources").all("row", "")
			if len(rows) != 3 {
				t.Fatalf("%d rows of sources", len(rows))
			}
			for i, want := range []string{
				"Address Client First seen Last seen Requests",
				"2001:db8::/64 server/1.0 " + time.Now().UTC().AddDate(0, 0, -20).Format("2 Jan 2006") + " 20 days ago 1,000",
				"Others " + time.Now().UTC().Format("2 Jan 2006") + " just now 204",
			} {
				rows[i].says(want)
			}
			v.get("/usage?sort=last&period=24h&key=" + unused.ID.String()).redirects(keyPage(unused) + "?period=24h&sort=last")
			empty := c.get(keyPage(unused)).is(http.StatusOK)
			empty.says("Sources No requests in the last 30 days")
			empty.none("table", "Sources")
			page.one("link", "30 days").with("href", keyPage(production))
			foreign := stranger.key("another").ID.String()
			for _, query := range []string{"period=1y", "key=" + foreign, "key=" + uuid.NewString(), "key=nothing"} {
				v.get("/usage?" + query).is(http.StatusNotFound)
				v.get("/usage/export?" + query).is(http.StatusNotFound)
			}
			for _, path := range []string{"/usage?key=" + foreign, "/usage?key=nothing", "/api-keys/" + foreign, "/api-keys/nothing"} {
				v.get(path).is(http.StatusNotFound).says("This key doesn’t exist in your account.")
			}
		})

		ofKey := c.get(keyPage(production) + "?period=24h")
		ofKey.one("heading", "=production")
		ofKey.byID("main").one("link", "Usage").with("href", "/usage?period=24h")
		ofKey.one("link", "API Keys").with("aria-current", "page")
		export := exported(t, c.get(c.get("/usage?period=24h").one("link", "Download CSV").attr("href")).is(http.StatusOK))
		if got := strings.Join(export[0], " "); len(export) != 3 || got != "time key_id label key requests refused" {
			t.Fatalf("the export is %q", export)
		}
		for _, line := range export[1:] {
			want := map[string]string{
				production.ID.String(): "'=production " + production.Masked() + " 204 0", leaked.ID.String(): "leaked " + leaked.Masked() + " 1 7",
			}[line[1]]
			if at, err := time.Parse(time.RFC3339, line[0]); err != nil || at.Truncate(time.Hour) != at || strings.Join(line[2:], " ") != want {
				t.Errorf("a line is %q, want %q", line, want)
			}
		}
		ofOne := c.get("/usage/export?period=90d&key=" + production.ID.String())
		if name := ofOne.header.Get("Content-Disposition"); !strings.HasPrefix(name, `attachment; filename="usage-=production-`) {
			t.Errorf("the file is %q", name)
		}
		if export := exported(t, ofOne); len(export) != 3 {
			t.Errorf("the export of one key is %q", export)
		}
	})
}

func TestTablesOfUsageAreSorted(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		for label, n := range map[string][2]int64{"beta": {5, 3}, "Alpha 10": {2, 0}, "alpha 9": {7, 1}} {
			s.store.Usage.Add(c.key(label), keys.Source{}, time.Now(), n[0], n[1])
		}
		for order, want := range map[string]string{
			"": "alpha 9, beta, Alpha 10", "-requests": "Alpha 10, beta, alpha 9", "label": "alpha 9, Alpha 10, beta",
			"-label": "beta, Alpha 10, alpha 9", "refused": "beta, alpha 9, Alpha 10", "none": "alpha 9, beta, Alpha 10",
		} {
			table := c.get("/usage?sort="+order).is(http.StatusOK).one("table", "Usage")
			var labels []string
			// After those of the columns.
			for _, link := range table.all("link", "")[3:] {
				labels = append(labels, link.text())
			}
			if got := strings.Join(labels, ", "); got != want {
				t.Errorf("the order %q is %s, want %s", order, got, want)
			}
		}
	})
}

// A key that was revoked before the period still has its page.
func TestUsageOfAKeyThatWasRevokedBefore(t *testing.T) {
	clock := modelstest.NewClock(time.Now())
	onSiteWith(t, models.Options{Now: clock.Now}, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("forgotten")
		c.revoke(key)
		clock.Advance(30 * time.Hour)
		c.signIn(c.email, password).redirects("/api-keys")
		c.get("/usage?period=24h").is(http.StatusOK).none("link", "forgotten")
		c.get(keyPage(key)+"?period=24h").is(http.StatusOK).says("No requests in the last 24 hours", "Revoked")
	})
}

func TestKeyWithoutUseFor30DaysIsListedAsUnused(t *testing.T) {
	clock := modelstest.NewClock(time.Now())
	onSiteWith(t, models.Options{Now: clock.Now}, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.key("never used")
		_, secret := c.newKey("used", uuid.Nil)
		for _, want := range []int{0, 1, 2} {
			c.signIn(c.email, password).redirects("/api-keys")
			if got := strings.Count(c.get("/api-keys").text(), "Unused for 30 days"); got != want {
				t.Errorf("%d keys are unused, want %d", got, want)
			}
			clock.Advance(29 * value.Day)
			if want == 0 {
				c.use(secret)
			}
			clock.Advance(value.Day)
		}
	})
}

func TestPageOfAKeyShowsRefusedRequests(t *testing.T) {
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{})
	c, other := s.customer(t), s.customer(t)
	key, _, err := s.store.Keys.Generate(t.Context(), c.account.ID, keys.NewKey{Label: "prod", FormID: uuid.New()}, record.Operator())
	modelstest.Must(t, err)
	page := keyPage(key)
	c.get(page).is(http.StatusOK).says("No refused requests in the last 7 days.")
	s.store.API.NoteRefusal(keys.Principal{AccountID: c.account.ID, KeyID: key.ID}, keys.Refusal{
		Reason: "address", Route: "GET /api/agents", RequestID: "QX7", From: usage.NewSource(netip.MustParseAddr("192.0.2.7"), "<b>curl/8.5.0</b>"),
	})
	table := c.get(page).is(http.StatusOK).one("table", "Refused requests")
	for _, part := range []string{"Time Reason Route Address Client Request ID", "address GET /api/agents 192.0.2.7 <b>curl/8.5.0</b> QX7"} {
		table.says(part)
	}
	other.get(page).is(http.StatusNotFound)
}
