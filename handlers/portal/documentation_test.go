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
