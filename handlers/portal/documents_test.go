package portal_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"portal/handlers/handlerstest"
)

// documentationPaths are the pages of a portal with the operator API.
var documentationPaths = []string{"/docs", "/docs/guides", "/docs/leaked-keys", "/docs/errors", "/docs/gateway", "/docs/operate", "/docs/operate/people", "/docs/changelog"}

// operated returns the portal over the same store with the operator API.
func (s *site) operated(t *testing.T) *site {
	t.Helper()
	deps := handlerstest.Deps(t, s.store, httpBase, nil)
	deps.OperatorToken = strings.Repeat("operator", 8)
	return &site{s.store, s.databaseURL, handlerstest.New(t, deps), deps.BaseURL}
}

var anchor = regexp.MustCompile(`href="(/docs[^"#]*)#([^"]+)"`)

func TestDocumentationIsPublicAndItsLinksLeadSomewhere(t *testing.T) {
	s := sqliteSite(t, httpBase)
	s.visitor(t).get("/docs/operate").is(http.StatusNotFound)
	s.visitor(t).get("/docs").none("link", "Operate")
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
