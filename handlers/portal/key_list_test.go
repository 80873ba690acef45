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
				order := page.one("combobox", "Sort by")
				if form := order.form(); form.attr("method") != "get" || form.attr("action") != "/api-keys" || order.attr("name") != "sort" {
					t.Error("the order is not sent by a form")
				}
				got := strings.Join(labels(page), ", ")
				for node := range order.node.Descendants() {
					if option := (element{t, node}); option.has("selected") {
						got += "; " + option.text()
					}
				}
				if got != want {
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
