package portal_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/handlers"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

func TestRevokedKeysShowTimeUserAndRefusals(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, stranger := s.customer(t), s.customer(t)
		c.get("/api-keys/revoked").is(http.StatusOK).says("No revoked or expired keys")
		c.key("active")
		key, secret := c.newKey("leaked", uuid.Nil)
		stranger.revoke(stranger.key("of another account"))
		c.use(secret)
		c.post("/api-keys/"+key.ID.String()+"/revocation", nil)
		for range 2 {
			if _, err := c.store.API.Authenticate(context.Background(), secret, keys.Source{}); !errors.Is(err, value.ErrKeyRevoked) {
				t.Fatal(err)
			}
		}

		c.get("/api-keys").one("link", "Revoked keys").with("href", "/api-keys/revoked")
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			page := v.get("/api-keys/revoked").is(http.StatusOK)
			rows := page.one("table", "Revoked API keys").all("row", "")
			if len(rows) != 2 {
				t.Fatalf("%d rows", len(rows))
			}
			rows[0].one("columnheader", "Ended")
			for i, want := range []string{"leaked", key.Masked(), "just now", c.email, "2 refused"} {
				rows[1].all("cell", "")[i].exactly(want)
			}
			usage := c.get(page.one("link", "2 refused").attr("href")).is(http.StatusOK)
			usage.says(key.Masked(), "1 request in the last 90 days", "2 refused")
			for _, query := range []string{"?before=x", "?before="} {
				v.get("/api-keys/revoked" + query).is(http.StatusNotFound)
			}
		})
	})
}

func TestLeakedKeyShowsWhoReportedItAndWhere(t *testing.T) {
	s := sqliteSite(t, httpBase)
	c := s.customer(t)
	report := func(source record.LeakReporter, url, address string) {
		t.Helper()
		_, secret := c.newKey("production", uuid.Nil)
		texts := []keys.LeakedText{keys.NewLeakedText(secret, url)}
		modelstest.Value(s.store.Leaks.Revoke(t.Context(), texts, source, address))(t)
	}
	const address = "https://github.com/acme/site/blob/main/.env"
	report(record.LeakGitHub, address, "")
	report(record.LeakPublic, "javascript:alert(1)", "")
	report(record.LeakPublic, "", "203.0.113.9")
	for _, path := range []string{"/api-keys/revoked", "/activity"} {
		page := c.get(path).is(http.StatusOK)
		page.says("Reported as leaked by GitHub: "+address, "Reported as leaked: javascript:alert(1)")
		page.one("link", address).with("href", address).with("rel", "noreferrer")
		page.none("link", "javascript:alert(1)")
	}
	c.get("/api-keys/revoked").says("Generate a new key")
	c.get("/activity").says("Reported as leaked", "from 203.0.113.9")
	if got := exported(t, c.get("/activity/export?kind=api_key.leaked"))[3][10]; got != "Reported as leaked by GitHub: "+address {
		t.Errorf("the export has the detail %q", got)
	}
}

func TestRevealSaysThatLeakedKeysAreRevokedOnlyWithAScanner(t *testing.T) {
	for _, on := range []bool{true, false} {
		c := sqliteSite(t, httpBase).with(t, func(d *handlers.Deps) {
			if on {
				d.GitHubKeysURL = "https://keys.example.com"
			}
		}).customer(t)
		page := c.post("/api-keys", generation("production", c.get("/api-keys").formID())).is(http.StatusOK)
		if got := strings.Contains(page.text(), "revoked automatically"); got != on {
			t.Errorf("with a scanner %t, the page says so: %t", on, got)
		}
	}
}

func TestRevokedKeysArePaged(t *testing.T) {
	s := sqliteSite(t, httpBase)
	c := s.customer(t)
	for i := range 51 {
		c.revoke(c.key(fmt.Sprintf("key %d", i)))
	}
	page := c.get("/api-keys/revoked").is(http.StatusOK)
	page.none("link", "Newest")
	if rows := page.all("row", ""); len(rows) != 51 {
		t.Errorf("%d rows", len(rows))
	}
	page = c.get(page.one("link", "Older").attr("href")).is(http.StatusOK)
	page.one("cell", "key 0")
	page.none("link", "Older")
	page.one("link", "Newest")
}

func TestLeakedKeyIsNoticedUntilTheReaderDismissesIt(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			agent := c.agent("Front desk")
			secrets := map[string]string{}
			for _, label := range []string{"Website", "Backend", "Mobile", "Desktop"} {
				n := keys.NewKey{Label: label, FormID: uuid.New(), Restrictions: keys.Restrictions{Agents: []uuid.UUID{agent.ID}}}
				_, secret, err := s.store.Keys.Generate(t.Context(), c.account.ID, n, record.Operator())
				modelstest.Must(t, err)
				secrets[label] = secret
			}
			report := func(label string) {
				t.Helper()
				modelstest.Value(s.store.Leaks.Revoke(t.Context(), []keys.LeakedText{keys.NewLeakedText(secrets[label], "")}, record.LeakGitHub, ""))(t)
			}
			c.get("/api-keys").none("group", "Leaked keys")
			report("Website")
			colleague := s.visitor(t)
			member := "member-" + c.email
			modelstest.Value(s.store.People.Add(t.Context(), c.account.ID, people.NewUser{Email: member, Password: password, Role: people.RoleMember}, record.Operator()))(t)
			colleague.signIn(member, password)

			notice := as.of(t, c.visitor).get("/api-keys").one("group", "Leaked keys")
			notice.says("Website ( nas_...", ") was revoked: reported as leaked by GitHub.")
			form := c.get(notice.one("link", "Generate its replacement").attr("href")).is(http.StatusOK)
			form.one("textbox", "Label").with("value", "Website")
			if !form.one("checkbox", "Front desk").has("checked") || !form.one("radio", "Only these").has("checked") {
				t.Error("the replacement reaches other agents")
			}
			dismissal := notice.one("button", "Dismiss").form().attr("action")
			if answer := as.of(t, c.visitor).post(dismissal, nil); as.htmx {
				answer.is(http.StatusOK).none("group", "Leaked keys")
			} else {
				answer.redirects("/api-keys")
			}
			c.get("/api-keys").none("group", "Leaked keys")
			colleague.get("/api-keys").one("group", "Leaked keys")

			report("Backend")
			notice = c.get("/api-keys").one("group", "Leaked keys")
			notice.says("Backend")
			if len(notice.all("link", "")) != 1 {
				t.Errorf("the notice %q has the dismissed key", notice.text())
			}
			report("Mobile")
			report("Desktop")
			colleague.get("/api-keys").one("group", "Leaked keys").one("link", "More leaked keys")
		})
	})
}

func TestRowsUnderRotationNameEachOther(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		old := c.key("production")
		first, _ := c.newKey("production", old.ID)
		second, _ := c.newKey("production", old.ID)
		bothVoices(t, func(t *testing.T, as voice) {
			page := as.of(t, c.visitor).get("/api-keys").is(http.StatusOK)
			row := func(key keys.Key) element { return page.byID("api-key-" + key.ID.String()) }
			// The masked keys are in no other row, because a search for one must find
			// its key.
			today := time.Now().UTC().Format("2 Jan")
			for key, badge := range map[*keys.Key]string{
				&old: "Replaced by production, " + today, &first: "Replaces production, " + today, &second: "Replaces production, " + today,
			} {
				link := row(*key).one("link", badge)
				if n := strings.Count(page.one("table", "Active API keys").text(), key.LastFour); n != 1 {
					t.Errorf("the table has %s %d times", key.Masked(), n)
				}
				link.with("href", "/api-keys/"+old.ID.String()+"/rotation")
			}
			row(old).one("link", "Rotate")
			row(second).none("link", "Rotate")
			lost := row(old).one("link", "Replace a lost key").attr("href")
			if as.htmx {
				return
			}
			c.get(lost).is(http.StatusOK).one("heading", "Replace a lost key")
		})
		c.revoke(first)
		c.revoke(second)
		page := c.get("/api-keys").is(http.StatusOK)
		if containsText(page, "Replace") && !strings.Contains(page.text(), "Replace a lost key") {
			t.Error("the badge stays after the rotation was canceled")
		}
	})
}
