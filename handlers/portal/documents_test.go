package portal_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"portal/handlers"
	"portal/models"
	"portal/models/modelstest"
)

// documentationPaths are the pages of a portal with the operator API.
var documentationPaths = []string{"/docs", "/docs/widget", "/docs/guides", "/docs/leaked-keys", "/docs/errors", "/docs/gateway", "/docs/operate", "/docs/operate/people", "/docs/changelog"}

// operated returns the portal over the same store with the operator API.
func (s *site) operated(t *testing.T) *site {
	t.Helper()
	return s.with(t, func(d *handlers.Deps) { d.OperatorToken = strings.Repeat("operator", 8) })
}

var anchor = regexp.MustCompile(`href="(/docs[^"#]*)#([^"]+)"`)

func TestDocumentationIsPublicAndItsLinksLeadSomewhere(t *testing.T) {
	s := sqliteSite(t, httpBase)
	s.visitor(t).get("/docs/operate").is(http.StatusNotFound)
	api := s.visitor(t).get("/docs")
	api.none("link", "Operate")
	api.says("with gitleaks or trufflehog")
	for text, section := range map[string]string{"report a leaked key": "#reportLeaks", "scan for leaked keys": "#scanning"} {
		api.one("link", text).with("href", "/docs/leaked-keys"+section)
	}
	v := s.operated(t).visitor(t)
	bodies := map[string]string{}
	for _, path := range documentationPaths {
		page := v.get(path)
		if page.status != http.StatusOK {
			t.Fatalf("%s: %d", path, page.status)
		}
		bodies[path] = page.body
	}
	for path, body := range bodies {
		links := anchor.FindAllStringSubmatch(body, -1)
		if len(links) < 20 {
			t.Errorf("%s has %d links to sections", path, len(links))
		}
		for _, link := range links {
			if !strings.Contains(bodies[link[1]], ` id="`+link[2]+`"`) {
				t.Errorf("%s links to %s#%s, which does not exist", path, link[1], link[2])
			}
		}
		if !strings.Contains(body, "href=\"/docs/operate#listAccounts\"") {
			t.Errorf("%s does not lead to the operator API", path)
		}
		if strings.Contains(body, "BASE_URL") || strings.Contains(body, "portal.example.com") {
			t.Errorf("%s has a placeholder", path)
		}
	}
}

func TestErrorsShowTheMessagesOfEachCode(t *testing.T) {
	page := sqliteSite(t, httpBase).visitor(t).get("/docs/errors").is(http.StatusOK)
	page.says("The user or the account is disabled.", "An agent of another account has this id. Choose another id.")
}

var assetURL = regexp.MustCompile(`(?:href|src)="(/static/[^"]+)"`)

func TestPagesLoadAssetsThatMayBeCached(t *testing.T) {
	s := sqliteSite(t, httpBase)
	v := s.visitor(t)
	urls := assetURL.FindAllStringSubmatch(v.get("/login").body, -1)
	if len(urls) != 4 {
		t.Fatalf("the page loads %d assets, want 4", len(urls))
	}
	for _, url := range urls {
		asset := v.get(url[1])
		if asset.status != http.StatusOK || asset.header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("%s: %d, %s", url[1], asset.status, asset.header.Get("Cache-Control"))
		}
	}
}

// The Content-Security-Policy blocks these.
func TestMarkupHoldsNoScriptsOrStyles(t *testing.T) {
	s := sqliteSite(t, httpBase)
	c := s.customer(t)
	key, agent := c.key("key"), c.agent("agent")
	forbidden := regexp.MustCompile(`(?i)<[^>]*\s(?:style|on[a-z]+)=|hx-on|<style|javascript:|"js:|<script(?:[^>]*)>[^<]`)
	for _, path := range []string{
		"/login", "/api-keys", "/api-keys/" + key.ID.String() + "/revocation", "/agents",
		"/agents/" + agent.ID.String() + "/removal", "/activity", "/account", "/integrate", "/usage", "/nothing",
		"/docs", "/docs/guides", "/docs/gateway", "/docs/changelog",
	} {
		for _, body := range []string{c.get(path).body, s.visitor(t).get(path).body, c.fragments().get(path).body} {
			if found := forbidden.FindString(body); found != "" {
				t.Errorf("%s holds %q", path, strings.TrimSpace(found))
			}
		}
	}
}

func TestProductNameIsOnEveryPage(t *testing.T) {
	s := sqliteSite(t, httpBase).with(t, func(d *handlers.Deps) { d.Name = "Acme & Sons" })
	visitor, c := s.visitor(t), s.customer(t)
	pages := []answer{visitor.get("/login"), visitor.get("/nothing")}
	for _, path := range []string{"/api-keys", "/agents", "/integrate", "/activity", "/account", "/nothing"} {
		pages = append(pages, c.get(path))
	}
	for _, page := range pages {
		if strings.Contains(page.text(), "Voice Portal") || strings.Count(page.text(), "Acme & Sons") < 2 {
			t.Errorf("the title or the header lacks the name: %s", page.text())
		}
	}
}

func TestForgottenPasswordLeadsToSupport(t *testing.T) {
	s := sqliteSite(t, httpBase)
	s.visitor(t).get("/login").says("Forgot password?", "Ask the person who gave you access.")

	page := s.with(t, func(d *handlers.Deps) { d.SupportURL = "mailto:help@example.com" }).visitor(t).get("/login")
	page.one("link", "Forgot password?").with("href", "mailto:help@example.com")
}

func TestSecurityContact(t *testing.T) {
	now := func() time.Time { return time.Date(2026, time.March, 14, 9, 26, 53, 0, time.UTC) }
	at := func(base, contact string) answer {
		s := newSite(t, modelstest.SQLiteURL(t), base, models.Options{Now: now})
		return s.with(t, func(d *handlers.Deps) { d.SecurityContact = contact }).visitor(t).get("/.well-known/security.txt")
	}
	at(httpBase, "").is(http.StatusNotFound)
	for base, canonical := range map[string]string{
		httpBase:                     "",
		"https://portal.example.com": "Canonical: https://portal.example.com/.well-known/security.txt\n",
	} {
		got := at(base, "mailto:security@example.com")
		want := "Contact: mailto:security@example.com\nExpires: 2026-09-10T00:00:00Z\nPreferred-Languages: en\n" + canonical
		if got.status != http.StatusOK || got.body != want || got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%d %s %q, want %q", got.status, got.header.Get("Content-Type"), got.body, want)
		}
	}
}

func TestPagesAreCompressedButKeysAreNot(t *testing.T) {
	s := sqliteSite(t, httpBase)
	c := s.customer(t)
	plain := c.get("/api-keys")
	// Set by hand, so that net/http does not decompress.
	c.headers = []string{"Accept-Encoding: gzip"}
	page := c.get("/api-keys").is(http.StatusOK)
	if page.header.Get("Content-Encoding") != "gzip" || !slices.Contains(page.header.Values("Vary"), "Accept-Encoding") {
		t.Fatalf("the page is not compressed: %v", page.header)
	}
	if len(page.body) > len(plain.body)/2 {
		t.Errorf("%d bytes became %d", len(plain.body), len(page.body))
	}
	reader := modelstest.Value(gzip.NewReader(strings.NewReader(page.body)))(t)
	whole, err := io.ReadAll(reader)
	if err != nil || !strings.Contains(string(whole), "</html>") {
		t.Errorf("the page is incomplete: %v", err)
	}

	for _, as := range []voice{{}, {htmx: true}} {
		v := as.of(t, c.visitor)
		v.headers = []string{"Accept-Encoding: gzip"}
		revealed := v.post("/api-keys", generation("production", plain.formID()))
		if revealed.header.Get("Content-Encoding") != "" {
			t.Error("the response to the form that generates a key is compressed")
		}
	}
	refusing := voice{}.of(t, c.visitor)
	refusing.headers = []string{"Accept-Encoding: gzip;q=0"}
	if got := refusing.get("/api-keys"); got.header.Get("Content-Encoding") != "" {
		t.Error("a client that does not accept gzip gets it")
	}
}
