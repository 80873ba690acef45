package portal_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var anchor = regexp.MustCompile(`href="(/docs[^"#]*)#([^"]+)"`)

func TestDocumentationIsPublicAndItsLinksLeadSomewhere(t *testing.T) {
	s := sqliteSite(t, httpBase)
	v := s.visitor(t)
	bodies := map[string]string{}
	for _, path := range []string{"/docs", "/docs/guides", "/docs/changelog"} {
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
		if strings.Contains(body, "BASE_URL") {
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
	forbidden := regexp.MustCompile(`(?i)\sstyle=|\son[a-z]+=|hx-on|<style|javascript:|"js:|<script(?:[^>]*)>[^<]`)
	for _, path := range []string{
		"/login", "/api-keys", "/api-keys/" + key.ID.String() + "/revocation", "/agents",
		"/agents/" + agent.ID.String() + "/removal", "/activity", "/account", "/integrate", "/usage", "/nothing",
		"/docs", "/docs/guides", "/docs/changelog",
	} {
		for _, body := range []string{c.get(path).body, s.visitor(t).get(path).body, c.fragments().get(path).body} {
			if found := forbidden.FindString(body); found != "" {
				t.Errorf("%s holds %q", path, strings.TrimSpace(found))
			}
		}
	}
}
