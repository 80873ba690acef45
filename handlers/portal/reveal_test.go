package portal_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestFirstRequestOfAKeyIsShown(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key, use := c.keyInUse("new", uuid.Nil)
		path := "/api-keys/" + key.ID.String() + "/first-use"
		if nothing := c.fragments().get(path).is(http.StatusNoContent); nothing.body != "" {
			t.Errorf("before it, the response is %q", nothing.body)
		}
		use()
		c.fragments().get(path).is(http.StatusOK).one("status", "First request received")
		c.get(path).redirects("/api-keys#revoke-" + key.ID.String())
		unused := c.key("unused")
		c.revoke(unused)
		c.fragments().get("/api-keys/"+unused.ID.String()+"/first-use").is(http.StatusOK).one("status", "revoked")
	})
}

func TestPageAfterAKeyClearsTheCache(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		old := c.key("production")
		for path, form := range map[string]url.Values{
			"/api-keys":     generation("new", uuid.NewString()),
			rotationOf(old): {"form_id": {uuid.NewString()}},
		} {
			page := c.post(path, form).is(http.StatusOK)
			onceInTheField(t, page)
			marks := page.header.Values("Set-Cookie")
			if len(marks) != 1 || !regexp.MustCompile(`^revealed=[\w=-]{20,}; Path=/; HttpOnly; SameSite=Lax$`).MatchString(marks[0]) {
				t.Errorf("the page with a key sets %q", marks)
			}
			next := c.get("/activity").is(http.StatusOK)
			if got := next.header.Get("Clear-Site-Data"); got != `"cache"` {
				t.Errorf("the next page clears %q", got)
			}
			last := c.get("/activity").is(http.StatusOK)
			if last.header.Get("Clear-Site-Data") != "" || last.header.Get("Set-Cookie") != "" {
				t.Error("the page after that clears it again")
			}
		}
		// The page itself clears a key in a dialog.
		if fragment := c.fragments().post("/api-keys", generation("new", uuid.NewString())); fragment.header.Get("Set-Cookie") != "" {
			t.Error("the response to a script sets a cookie")
		}
	})
}

func TestRevealedCookieUnderHTTPSHasTheHostPrefix(t *testing.T) {
	s := sqliteSite(t, "https://portal.test")
	c := s.customer(t)
	page := c.post("/api-keys", generation("new", uuid.NewString())).is(http.StatusOK)
	if got := page.header.Get("Set-Cookie"); !regexp.MustCompile(`^__Host-revealed=[\w=-]{20,}; Path=/; HttpOnly; Secure; SameSite=Lax$`).MatchString(got) {
		t.Errorf("the page with a key sets %q", got)
	}
	next := c.get("/api-keys").is(http.StatusOK)
	if got := next.header.Get("Set-Cookie"); next.header.Get("Clear-Site-Data") == "" || !strings.HasPrefix(got, "__Host-revealed=; ") || !strings.Contains(got, "Max-Age=0") {
		t.Errorf("the next page clears %q and sets %q", next.header.Get("Clear-Site-Data"), got)
	}
}
