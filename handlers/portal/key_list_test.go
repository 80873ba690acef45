package portal_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/models"
)

// used generates a key and sends requests with it.
func (c customer) used(label string, requests int) models.Key {
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

func TestTheListIsSortedByAnyColumn(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.key("key 10")
		c.key("Beta")
		c.used("Key 2", 1)
		c.key("älpha")
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			for query, want := range map[string]string{
				"":                           "älpha, Key 2, Beta, key 10",
				"?sort=label":                "älpha, Beta, Key 2, key 10",
				"?sort=label&dir=desc":       "key 10, Key 2, Beta, älpha",
				"?sort=created&dir=asc":      "key 10, Beta, Key 2, älpha",
				"?sort=last-used":            "Key 2, älpha, Beta, key 10",
				"?sort=last-used&dir=asc":    "älpha, Beta, key 10, Key 2",
				"?sort=actions":              "älpha, Key 2, Beta, key 10",
				"?sort=label&dir=up":         "älpha, Beta, Key 2, key 10",
				"?sort=%27+OR+1%3D1&dir=%27": "älpha, Key 2, Beta, key 10",
			} {
				if got := strings.Join(labels(v.get("/api-keys"+query).is(http.StatusOK)), ", "); got != want {
					t.Errorf("%s: %s, want %s", query, got, want)
				}
			}
		})
	})
}

func TestHeadersLinkToTheListInAnotherOrder(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.key("one")
		page := c.get("/api-keys")
		for name, want := range map[string]string{"Label": "", "Key": "", "Created": "descending", "Last Used": "", "Actions": ""} {
			if got := page.one("columnheader", name).attr("aria-sort"); got != want {
				t.Errorf("%s is sorted %q, want %q", name, got, want)
			}
		}
		for _, order := range []string{"ascending", "descending", "ascending"} {
			page = c.get(page.one("link", "Label").attr("href")).is(http.StatusOK)
			if got := page.one("columnheader", "Label").attr("aria-sort"); got != order {
				t.Errorf("labels are sorted %q, want %q", got, order)
			}
		}
		page.none("link", "Sort by usage")
		c.used("busy", 3)
		c.used("calm", 1)
		page = c.get("/api-keys")
		page.says("3 in 30 days", "1 in 30 days", "0 in 30 days")
		for _, want := range []string{"busy, calm, one", "one, calm, busy"} {
			page = c.get(page.one("link", "Sort by usage").attr("href")).is(http.StatusOK)
			if got := strings.Join(labels(page), ", "); got != want {
				t.Errorf("sorted by usage: %s, want %s", got, want)
			}
		}
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
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("first")
		seen := func() string {
			poll, ok := c.get("/api-keys").byID("api-key-seen")
			if !ok {
				t.Fatal("the list does not poll")
			}
			return poll.attr("hx-get") + "?seen=" + poll.attr("value")
		}
		asking := c.fragments()
		changes := seen()
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
			if _, err := s.store.Keys.Rename(context.Background(), c.account.ID, key.ID, "renamed", models.Operator()); err != nil {
				t.Error(err)
			}
		})
		changed("a revocation", func() {
			c.revoke(key)
		})
	})
}
