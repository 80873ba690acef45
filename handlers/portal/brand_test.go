package portal_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"portal/handlers"
	"portal/handlers/brand"
	"portal/models"
	"portal/models/modelstest"
)

var brandFile = regexp.MustCompile(`/static/(?:logo|accent)\.[0-9a-f]+\.(?:svg|css)`)

const scripted = `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(2)</script></svg>`

func TestBrandIsOnEveryPage(t *testing.T) {
	accent := modelstest.Value(brand.NewAccent("#7a1fa2"))(t)
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{}).with(t, func(d *handlers.Deps) {
		d.Name = "Acme Voice"
		d.Brand = brand.Brand{
			Logo: &brand.Logo{Content: []byte(scripted), ContentType: "image/svg+xml", Extension: ".svg"}, Accent: accent, HomeURL: "https://acme.example.com/?a=b&c=d",
		}
	})
	c, v := s.customer(t), s.visitor(t)
	var files []string
	for _, page := range []answer{v.get("/login"), v.get("/docs"), v.get("/nothing"), v.get("/invitations/x"), c.get("/api-keys"), c.get("/account"), c.get("/nothing")} {
		page.one("link", "Back to Acme Voice").with("href", "https://acme.example.com/?a=b&c=d")
		if strings.Contains(page.body, "alert(") || strings.Contains(page.body, "favicon") {
			t.Error("the page has the content of the logo, or the portal's own")
		}
		found := brandFile.FindAllString(page.body, -1)
		if len(found) != 3 { // the icon, the style sheet and the picture
			t.Fatalf("the page has %q", found)
		}
		files = found
	}
	for _, file := range files {
		answer := v.get(file)
		answer.headed("Cache-Control", "public, max-age=31536000, immutable")
		answer.headed("X-Content-Type-Options", "nosniff")
		if strings.HasSuffix(file, ".css") {
			answer.headed("Content-Type", "text/css; charset=utf-8")
			if answer.body != accent.Stylesheet() {
				t.Errorf("the style sheet is %s", answer.body)
			}
			continue
		}
		answer.headed("Content-Type", "image/svg+xml")
		if policy := answer.header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "script-src") || !strings.HasSuffix(policy, "; sandbox") {
			t.Errorf("the policy of the logo is %q", policy)
		}
	}
	plain := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{}).visitor(t)
	plain.get(files[0]).is(http.StatusNotFound)
	plain.get("/login").none("link", "Back to Voice Portal")
}
