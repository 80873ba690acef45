package portal_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"

	"portal/handlers"
	"portal/handlers/middleware"
	"portal/models"
	"portal/models/modelstest"
)

// documentationPaths are the pages of a portal with the operator API.
var documentationPaths = []string{"/docs", "/docs/widget", "/docs/guides", "/docs/workload-identity", "/docs/leaked-keys", "/docs/reports", "/docs/webhooks", "/docs/errors", "/docs/gateway", "/docs/operate", "/docs/operate/people", "/docs/operate/keys", "/docs/operate/reports", "/docs/changelog"}

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
		// Other pages have some operations of the same tag, under a heading of their own.
		if strings.Contains(body, "Documents and health") != (path == "/docs/guides") {
			t.Errorf("%s introduces its operations by the words of another page", path)
		}
	}
}

// As pasted, the example's agent would get 404. Markdown and visitors keep it.
func TestExamplesNameTheAgentOfTheReader(t *testing.T) {
	losingTheDatabase(t, func(t *testing.T, databaseURL string, end func()) {
		s := newSite(t, databaseURL, httpBase, models.Options{Timeout: models.Timeout})
		c := s.customer(t)
		const exampleAgent = "0198c2f4-7a31-7c6e-9d52-3f8be6a1c004"
		for _, step := range []string{"without an agent", "with one", "without the database"} {
			own := ""
			switch step {
			case "with one":
				own = c.agent("Front desk").ID.String()
			case "without the database":
				end()
			}
			for _, path := range documentationPaths {
				if strings.Contains(path, "operate") {
					continue
				}
				public := s.visitor(t).get(path).is(http.StatusOK)
				page := c.get(path).is(http.StatusOK) // and in no cache
				want := public.code()
				for i, block := range want {
					if own == "" {
						break
					}
					want[i] = strings.ReplaceAll(block, "AGENT_ID", own)
					if strings.HasPrefix(block, "curl") { // the others are responses
						want[i] = strings.ReplaceAll(want[i], exampleAgent, own)
					}
				}
				code := page.code()
				if !slices.Equal(code, want) {
					t.Errorf("%s %s: the examples are\n%q", path, step, code)
				}
				if named := strings.Count(strings.Join(code, ""), own); path == "/docs" && named < 5 {
					t.Errorf("%s %s names the agent %d times", path, step, named)
				}
				if own != "" && strings.Contains(public.body, own) {
					t.Errorf("%s shows visitors an agent", path)
				}
				if markdown := c.get(path + ".md"); own != "" && strings.Contains(markdown.body, own) {
					t.Errorf("%s.md has the reader's agent", path)
				}
			}
		}
	})
}

func TestErrorsShowTheMessagesOfEachCode(t *testing.T) {
	page := sqliteSite(t, httpBase).visitor(t).get("/docs/errors").is(http.StatusOK)
	page.says("The user or the account is disabled.", "An agent of another account has this id. Choose another id.")
	page.says("A key for reports is used for something else, or any other key is used for reports. This key is for reports")
}

func TestResponsesNameEachOfTheirCodes(t *testing.T) {
	page := sqliteSite(t, httpBase).visitor(t).get("/docs/reports").is(http.StatusOK)
	page.says("403 ADDRESS_NOT_ALLOWED ACCESS_NOT_ALLOWED")
	page.says("for a key with the access reports .") // not with backquotes
}

func TestDocumentationIsSearched(t *testing.T) {
	v := sqliteSite(t, httpBase).visitor(t)
	page := v.get("/docs/search?q=rotate+KEY").is(http.StatusOK).one("main", "")
	page.one("searchbox", "Search the documentation").with("value", "rotate KEY")
	page.one("link", "Rotate a key").with("href", "/docs/guides#rotation")
	v.get("/docs/search?q=invalid_grant").is(http.StatusOK).one("main", "").one("link", "Exchange a token").with("href", "/docs/workload-identity#workload-identity")
	v.get("/docs/search?q=" + url.QueryEscape("nothing <b>\x00\xff")).is(http.StatusOK).says("No section has all words")
	v.get("/docs/search").is(http.StatusOK).says("Enter words")
	v.get("/docs/search?q=erase+an+account").one("main", "").none("link", "Erase an account") // the operator API is off
}

// maxMarkdown is how many characters of a page all common coding agents read.
const maxMarkdown = 50_000

var markdownLink = regexp.MustCompile(`\]\(([^)]*)\)`)

func TestDocumentationIsAlsoMarkdown(t *testing.T) {
	s := sqliteSite(t, httpBase).operated(t)
	v := s.visitor(t)
	pages := map[string]string{} // by address
	for _, path := range documentationPaths {
		page := v.get(path+".md").is(http.StatusOK).headed("Content-Type", "text/markdown; charset=utf-8")
		if n := utf8.RuneCountInString(page.body); n > maxMarkdown {
			t.Errorf("%s.md has %d characters", path, n)
		}
		if first, _, _ := strings.Cut(page.body, "\n"); !strings.Contains(first, httpBase+"/llms.txt") {
			t.Errorf("%s.md begins with %q", path, first)
		}
		pages[httpBase+path+".md"] = page.body
	}
	for address, text := range pages {
		page := v.get(strings.TrimSuffix(strings.TrimPrefix(address, httpBase), ".md")).one("main", "")
		prose, code := splitCode(text)
		if want := page.code(); !slices.Equal(code, want) {
			t.Errorf("%s has the code\n%q\nand the page\n%q", address, code, want)
		}
		for _, link := range markdownLink.FindAllStringSubmatch(prose, -1) {
			to, _, _ := strings.Cut(link[1], "#")
			if strings.HasPrefix(to, httpBase+"/docs") && pages[to] == "" || !strings.HasPrefix(to, "http") {
				t.Errorf("%s has a link to %s", address, link[1])
			}
		}
		for _, heading := range page.all("heading", "") {
			if words := heading.text(); !strings.Contains(strings.NewReplacer("`", "", `\`, "").Replace(prose), words) {
				t.Errorf("%s lacks the heading %q", address, words)
			}
		}
	}
}

// code returns the text of each block of code in an element.
func (e element) code() []string {
	var code []string
	for block := range e.node.Descendants() {
		if block.Data != "pre" {
			continue
		}
		code = append(code, "")
		for node := range block.Descendants() {
			if node.Type == html.TextNode {
				code[len(code)-1] += node.Data
			}
		}
	}
	return code
}

// splitCode returns the lines of a Markdown document outside fenced code, and each code block.
func splitCode(text string) (prose string, code []string) {
	fence := ""
	for line := range strings.Lines(text) {
		switch {
		case fence == "" && strings.HasPrefix(line, "```"):
			fence = line[:strings.LastIndex(line, "`")+1]
			code = append(code, "")
		case fence == "":
			prose += line
		case line == fence+"\n":
			fence = ""
			code[len(code)-1] = strings.TrimSuffix(code[len(code)-1], "\n")
		default:
			code[len(code)-1] += line
		}
	}
	return prose, code
}

func TestIndexForCodingAgentsListsEveryPage(t *testing.T) {
	s := sqliteSite(t, httpBase).operated(t)
	index := s.visitor(t).get("/llms.txt").is(http.StatusOK).headed("Content-Type", "text/plain; charset=utf-8").body
	if !strings.HasPrefix(index, "# Voice Portal\n\n> Exchange an API key for ") || len(index) > maxMarkdown {
		t.Errorf("the index begins without title and summary, or has %d bytes:\n%s", len(index), index)
	}
	var listed []string
	for line := range strings.Lines(index) {
		if link := regexp.MustCompile(`^- \[[^]]+\]\(` + httpBase + `(/docs.*)\.md\): \S`).FindStringSubmatch(line); link != nil {
			listed = append(listed, link[1])
		}
	}
	if !slices.Equal(listed, documentationPaths) {
		t.Errorf("the index has the pages %q, want %q", listed, documentationPaths)
	}
	if visitor := sqliteSite(t, httpBase).visitor(t); strings.Contains(visitor.get("/llms.txt").body, "/docs/operate") {
		t.Error("the index of a portal without the operator API has its pages")
	}
}

func TestClientsThatPreferMarkdownGetIt(t *testing.T) {
	s := sqliteSite(t, httpBase)
	for accept, want := range map[string]bool{
		"":                            false,
		"*/*":                         false,
		"text/*":                      false,
		"application/json":            false,
		"nonsense, text/markdown;q=x": false,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": false,
		"text/markdown":                         true,
		"Text/Markdown; charset=utf-8":          true,
		"text/markdown, text/html, */*":         true,
		"text/html;q=0.7, text/markdown;q=0.7":  true,
		"text/markdown, text/plain;q=0.9":       true,
		"text/markdown;q=0.5, text/html":        false,
		"text/markdown;q=0.5, */*;q=0.1":        true,
		"text/markdown;q=0.5, */*":              false,
		"text/markdown;q=0":                     false,
		"text/markdown;q=0, text/html;q=0, */*": false,
		"text/*, text/html;q=0.5":               true,
	} {
		v := s.visitor(t)
		if accept != "" {
			v.headers = []string{"Accept: " + accept}
		}
		page := v.get("/docs/errors").is(http.StatusOK)
		if got := page.header.Get("Content-Type") == "text/markdown; charset=utf-8"; got != want {
			t.Errorf("with Accept: %s the page is %s", accept, page.header.Get("Content-Type"))
		}
		if want && page.body != v.get("/docs/errors.md").body {
			t.Errorf("with Accept: %s the text is not that of the address ending in .md", accept)
		}
		if !slices.Contains(page.header.Values("Vary"), "Accept") {
			t.Errorf("with Accept: %s Vary is %q", accept, page.header.Values("Vary"))
		}
	}
}

func TestPagesLeadToTheirMarkdown(t *testing.T) {
	page := sqliteSite(t, httpBase).visitor(t).get("/docs/guides").is(http.StatusOK)
	page.one("link", "View as Markdown").with("href", "/docs/guides.md")
	page.says("For coding agents: " + httpBase + "/llms.txt lists all pages")
	if heading, line := strings.Index(page.body, "<h1"), strings.Index(page.body, "For coding agents"); heading > line {
		t.Error("for screen readers the page does not begin with its heading")
	}
	if !strings.Contains(page.body, `<link rel="alternate" type="text/markdown" href="/docs/guides.md">`) {
		t.Error("the head does not name the Markdown")
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

func TestPagesLeadToSupport(t *testing.T) {
	s := sqliteSite(t, httpBase)
	s.visitor(t).get("/login").says("Forgot password?", "Ask an owner of your account to have it reset.")

	page := s.with(t, func(d *handlers.Deps) { d.SupportURL = "mailto:help@example.com" }).visitor(t).get("/login")
	page.one("link", "Forgot password?").with("href", "mailto:help@example.com")
	for _, path := range []string{"/docs", "/api-keys"} {
		s.with(t, func(d *handlers.Deps) { d.SupportURL = "mailto:help@example.com" }).customer(t).get(path).one("link", "Support").with("href", "mailto:help@example.com")
		s.customer(t).get(path).none("link", "Support")
	}
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

func TestNoticeStandsAboveEveryPage(t *testing.T) {
	plain := sqliteSite(t, httpBase)
	noticed := plain.with(t, func(d *handlers.Deps) { d.Notice = "Maintenance on Sunday <2 h>" })
	c := noticed.customer(t)
	for _, path := range []string{"/api-keys", "/account", "/docs", "/docs/errors", "/nothing"} {
		c.get(path).one("main", "").one("region", "Notice").exactly("Maintenance on Sunday <2 h>")
	}
	noticed.visitor(t).get("/login").one("region", "Notice")
	plain.visitor(t).get("/login").none("region", "Notice")
	if body := noticed.visitor(t).get("/docs.md").body; strings.Contains(body, "Maintenance") {
		t.Error("the Markdown has the notice")
	}
}

func TestChangePasswordLeadsToAccount(t *testing.T) {
	s := sqliteSite(t, httpBase)
	s.visitor(t).get("/.well-known/change-password").redirects("/account")
}

func TestCrawlersReadTheDocumentationOnly(t *testing.T) {
	got := sqliteSite(t, httpBase).visitor(t).get("/robots.txt").headed("Content-Type", "text/plain; charset=utf-8")
	if got.status != http.StatusOK || got.body != "User-agent: *\nAllow: /docs\nDisallow: /\n" {
		t.Errorf("robots.txt is %q", got.body)
	}
}

func TestGuidesHaveTheRateLimit(t *testing.T) {
	s := sqliteSite(t, httpBase)
	s.visitor(t).get("/docs/guides").one("region", "Rate limits and backoff").says("does not limit the requests of a key")
	limited := s.with(t, func(d *handlers.Deps) { d.RateLimit = middleware.RateLimit{PerSecond: 50, Burst: 100} })
	limited.visitor(t).get("/docs/guides").one("region", "Rate limits and backoff").says("a bucket of 100 requests, which refills at 50 a second")
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
