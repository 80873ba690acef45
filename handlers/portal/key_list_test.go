package portal_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
)

// used generates a key and sends requests with it.
func (c customer) used(label string, requests int) keys.Key {
	c.t.Helper()
	key, secret := c.newKey(label, uuid.Nil)
	for range requests {
		c.use(secret)
	}
	return key
}

// labels returns the labels of the rows, in order.
func labels(a answer) []string {
	a.t.Helper()
	var labels []string
	for _, row := range a.one("table", "Active API keys").all("row", "")[1:] {
		labels = append(labels, row.all("cell", "")[0].text())
	}
	return labels
}

func TestTheListIsSorted(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.key("key 10")
		c.get("/api-keys").none("combobox", "Sort by")
		c.used("Beta", 2)
		c.used("Key 2", 1)
		c.key("älpha")
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			for query, want := range map[string]string{
				"":                         "älpha, Key 2, Beta, key 10; Newest",
				"?sort=newest":             "älpha, Key 2, Beta, key 10; Newest",
				"?sort=oldest":             "key 10, Beta, Key 2, älpha; Oldest",
				"?sort=last-used":          "Key 2, Beta, älpha, key 10; Last used",
				"?sort=unused":             "älpha, key 10, Beta, Key 2; Longest unused",
				"?sort=requests":           "Beta, Key 2, älpha, key 10; Most requests",
				"?sort=label":              "älpha, Beta, Key 2, key 10; Label",
				"?sort=%27+OR+1%3D1&dir=1": "älpha, Key 2, Beta, key 10; Newest",
			} {
				page := v.get("/api-keys" + query).is(http.StatusOK)
				page.one("combobox", "Sort by").with("name", "sort").form().with("method", "get").with("action", "/api-keys")
				_, order := page.options("Sort by")
				if got := strings.Join(labels(page), ", ") + "; " + order; got != want {
					t.Errorf("%s: %s, want %s", query, got, want)
				}
			}
		})
	})
}

// The browser filters the rows, so that nothing that is typed or pasted reaches a URL.
func TestALongListHasAFilterThatSendsNothing(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		for i := range 10 {
			c.key(fmt.Sprintf("staging %d", i))
		}
		c.get("/api-keys").none("searchbox", "")
		c.key("production")
		if c.get("/api-keys").one("searchbox", "Filter keys").has("name") {
			t.Error("a form sends the filter")
		}
	})
}

func TestTheListIsSentAgainOnlyWhenItHasChanged(t *testing.T) {
	clocked(t, func(t *testing.T, s *site, clock *modelstest.Clock) {
		c := s.customer(t)
		key := c.used("first", 1)
		seen := func() string {
			poll := c.get("/api-keys").byID("api-key-seen")
			return poll.attr("hx-get") + "?seen=" + poll.attr("value")
		}
		asking := c.fragments()
		changes := seen()
		clock.Advance(time.Minute) // the page changes "1 minute ago" itself
		if same := asking.get(changes).is(http.StatusNoContent); same.body != "" {
			t.Errorf("nothing has changed, but the response has %d bytes", len(same.body))
		}
		c.get(changes).redirects("/api-keys")
		changed := func(what string, change func()) {
			before := seen()
			change()
			if got := asking.get(before); got.status != http.StatusOK {
				t.Errorf("after %s the status is %d", what, got.status)
			}
		}
		changed("a new key", func() { c.used("second", 0) })
		changed("a request", func() { c.used("third", 1) })
		changed("a new label", func() {
			if _, err := s.store.Keys.Rename(context.Background(), c.account.ID, key.ID, "renamed", record.Operator()); err != nil {
				t.Error(err)
			}
		})
		changed("a restriction", func() {
			restrictions := keys.Restrictions{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
			modelstest.Value(s.store.Keys.Restrict(context.Background(), c.account.ID, key.ID, "", restrictions, "", record.Operator()))(t)
		})
		changed("a revocation", func() { c.revoke(key) })
	})
}

// The sizes for an account with 50 keys, each used. Headers add about 600 bytes to a response.
func TestThePageOfKeysStaysSmall(t *testing.T) {
	s := sqliteSite(t, httpBase)
	c := s.customer(t)
	for i := range 50 {
		c.used(fmt.Sprintf("Production backend %d", i), 1)
	}
	// Set by hand, so that net/http does not decompress.
	c.headers = []string{"Accept-Encoding: gzip"}
	total := len(c.get("/api-keys").is(http.StatusOK).body)
	c.headers = nil
	page := c.get("/api-keys")
	for _, asset := range regexp.MustCompile(`/static/[^"]+`).FindAllString(page.body, -1) {
		total += len(c.send(http.MethodGet, asset, "", "Accept-Encoding: gzip").body)
	}
	if total > 47_900 {
		t.Errorf("the first load is %d bytes", total)
	}

	generated := c.fragments().post("/api-keys", url.Values{"label": {"Batch import"}, "form_id": {uuid.NewString()}}).is(http.StatusOK)
	if n := len(generated.body); n > 4_500 {
		t.Errorf("a generated key is %d bytes", n)
	}
}

func naming(name string) url.Values { return url.Values{"name": {name}} }

func TestAKeyIsRenamedInItsRow(t *testing.T) {
	asCustomer(t, models.Options{}, func(_ *testing.T, c customer, v *visitor) {
		c.visitor = v
		key := c.key("before")
		path := "/api-keys/" + key.ID.String() + "/name"

		asked := c.get(path).is(http.StatusOK)
		asked.one("textbox", "New name").with("value", "before").with("autofocus", "")
		cancel := asked.one("button", "Cancel").form().with("action", "/api-keys#menu-"+key.ID.String())
		if v.htmx {
			asked.one("cell", "before")
			cancel.with("hx-get", "/api-keys/"+key.ID.String())
		} else {
			asked.one("heading", "Rename before")
			asked.none("table", "")
		}

		done := c.post(path, naming(" after "))
		if !v.htmx {
			done.redirects("/api-keys#menu-" + key.ID.String())
			done = c.get("/api-keys")
		}
		done.is(http.StatusOK).one("cell", "after")
		done.says("API key " + key.Masked() + " renamed to “after”.")
		if menu := done.byID("menu-" + key.ID.String()); v.htmx {
			menu.with("autofocus", "")
		}
	})
}

func TestARefusedNameIsKeptAndExplained(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("stays")
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			for _, name := range []string{"  ", strings.Repeat("long ", 20) + "!", "a\x01b"} {
				refused := v.post("/api-keys/"+key.ID.String()+"/name", naming(name)).is(http.StatusUnprocessableEntity)
				field := refused.one("textbox", "New name").with("value", name).with("aria-invalid", "true")
				refused.byID(field.attr("aria-describedby")).with("role", "alert")
				if as.htmx {
					refused.one("cell", "stays")
				}
			}
		})
		c.get("/api-keys").one("cell", "stays")
	})
}

func TestRowsShowTheRequestsOfTheirKeys(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		for want, key := range map[string]keys.Key{
			"3 requests in the last 30 days":  c.used("busy", 3),
			"1 request in the last 30 days":   c.used("calm", 1),
			"No requests in the last 30 days": c.key("idle"),
		} {
			bothVoices(t, func(t *testing.T, as voice) {
				v := as.of(t, c.visitor)
				v.get("/api-keys").one("link", "Usage of "+key.Label).with("title", want).with("href", "/api-keys/"+key.ID.String())
				c.get("/api-keys/"+key.ID.String()).is(http.StatusOK).says(want, key.Masked())
			})
		}
	})
}

func TestConfirmationShowsTheUseOfTheKey(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		ask := func(key keys.Key) answer {
			return c.fragments().get("/api-keys/" + key.ID.String() + "/revocation").is(http.StatusOK)
		}
		ask(c.used("busy", 2)).says("Still in use. Used just now, 2 requests in the last 24 hours.")
		calm := c.used("calm", 1)
		ask(calm).says("Used just now, 1 request in the last 24 hours.", "Revoke calm ("+calm.Masked()+")?")
		never := ask(c.key("never"))
		never.says("This key has never been used.")
		if containsText(never, "Still in use") {
			t.Error("it warns of a key that was never used")
		}
	})
}
