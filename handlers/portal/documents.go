package portal

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"portal/handlers/brand"
	"portal/handlers/middleware"
	"portal/handlers/portal/markdown"
	"portal/handlers/portal/reference"
	"portal/handlers/problem"
	"portal/models/agents"
	"portal/static"
	"portal/templates"
)

// documents are the files and pages that need no session.
type documents struct {
	*site

	agents          *agents.Agents
	assets          *static.Assets
	branding        map[string]static.Asset // by file name
	operated        bool                    // the operator API is on
	workloads       bool                    // tokens of workloads can stand for a key
	rate            middleware.RateLimit    // of each API key
	securityContact string                  // URL in security.txt; empty: no security.txt
	// documentation returns the pages about the API.
	documentation func() (documentation, error)
}

// documentation is the pages about the API, and their index for coding agents.
type documentation struct {
	pages map[string]document // by path
	index []byte

	search   templates.DocumentationPage
	sections func() ([]section, error)
}

// document is a page, and its Markdown, which the first call makes from the page.
type document struct {
	page     templates.DocumentationPage
	markdown func() ([]byte, error)
}

// newDocumentation reads the OpenAPI document and the changelog of the API. It is slow, so the
// start does not wait for it.
func (p *documents) newDocumentation(openAPI []byte, changelog string) (documentation, error) {
	d := templates.Documentation{Guides: templates.NewGuides(p.baseURL.String()), Operated: p.operated}
	if p.workloads {
		d.Workloads = templates.NewWorkloadGuides(p.baseURL.String())
	}
	var err error
	if d.Reference, err = reference.New(openAPI, p.baseURL.String()); err != nil {
		return documentation{}, fmt.Errorf("API reference: %w", err)
	}
	if d.Releases, err = reference.Changelog(changelog); err != nil {
		return documentation{}, fmt.Errorf("API reference: %w", err)
	}
	for _, code := range d.Reference.Errors {
		if code.Status == "401" {
			d.Guides.Unauthorized = code.Messages
		}
	}
	d.Guides.Rate, d.Guides.Burst = p.rate.PerSecond, p.rate.Burst
	pages := templates.NewDocumentation(d)
	all := documentation{pages: map[string]document{}}
	for _, page := range pages {
		all.pages[page.Path] = document{page, sync.OnceValues(func() ([]byte, error) { return p.convert(page) })}
	}
	all.search = pages[0].Searched()
	all.sections = sync.OnceValues(func() ([]section, error) { return p.sections(pages) })
	all.index, err = pages[0].Index(p.product)
	return all, err
}

// convert renders a page and returns it as Markdown. The page is the same for every request. Links
// to other pages lead to their Markdown.
func (p *documents) convert(page templates.DocumentationPage) ([]byte, error) {
	html, err := p.templates.Page(templates.Frame{Product: p.product}, page)
	if err != nil {
		return nil, err
	}
	return markdown.Convert(html, func(address string) (string, error) {
		link, err := p.baseURL.JoinPath(page.Path).Parse(address)
		if err != nil {
			return "", err
		}
		if link.Path == docsPath || strings.HasPrefix(link.Path, docsPath+"/") {
			link.Path += markdownExtension
		}
		return link.String(), nil
	})
}

// The path of the first page about the API, and what follows the path of a page in that of its
// Markdown.
const (
	docsPath          = "/docs"
	markdownExtension = ".md"
)

// show shows a page about the API.
func (p *documents) show(c *gin.Context) error {
	page, err := p.document(c.FullPath())
	if err != nil {
		return err
	}
	shown := page.page
	if shown.NamesAgent {
		if id := p.ownAgent(c); id != "" {
			shown = shown.For(id)
		}
	}
	return p.negotiate(c, shown, page.markdown)
}

// ownAgentWait is how long a page waits for the reader's agent.
const ownAgentWait = time.Second

// ownAgent returns the id of an agent of the reader's account. It returns "" for a visitor, if
// there is no agent, or if the database does not answer, because the page works without it.
func (p *documents) ownAgent(c *gin.Context) (id string) {
	whole := c.Request
	ctx, cancel := context.WithTimeout(whole.Context(), ownAgentWait)
	defer cancel()
	c.Request = whole.WithContext(ctx)
	session, err := p.currentSession(c)
	if err == nil && session != nil && !session.FactorDue {
		err = p.actions.Run(func() (err error) {
			id, err = exampleAgent(ctx, p.agents, session.AccountID)
			return err
		})
	}
	if err != nil {
		_ = c.Error(err) // for the log
	}
	c.Request = whole
	return id
}

// showMarkdown shows a page about the API as Markdown.
func (p *documents) showMarkdown(c *gin.Context) error {
	page, err := p.document(strings.TrimSuffix(c.FullPath(), markdownExtension))
	if err != nil {
		return err
	}
	return sendMarkdown(c, page.markdown)
}

// showIndex shows the index of the pages about the API.
func (p *documents) showIndex(c *gin.Context) error {
	all, err := p.documentation()
	if err != nil {
		return err
	}
	sendAs(c, http.StatusOK, "text/plain; charset=utf-8", all.index)
	return nil
}

func (p *documents) document(path string) (document, error) {
	all, err := p.documentation()
	if err != nil {
		return document{}, err
	}
	page, ok := all.pages[path]
	if !ok {
		return document{}, problem.NotFound()
	}
	return page, nil
}

// securityContactAge is how long a copy of security.txt is valid. RFC 9116 recommends less than a
// year.
const securityContactAge = 180 * 24 * time.Hour

// showSecurityContact serves security.txt (RFC 9116).
func (p *documents) showSecurityContact(c *gin.Context) error {
	expires := p.now().UTC().Truncate(24 * time.Hour).Add(securityContactAge)
	text := fmt.Sprintf("Contact: %s\nExpires: %s\nPreferred-Languages: en\n", p.securityContact, expires.Format(time.RFC3339))
	if p.baseURL.Scheme == "https" { // Canonical must be an https URL
		text += fmt.Sprintf("Canonical: %s\n", p.url(c.FullPath()))
	}
	c.Header("Cache-Control", "public, max-age=86400")
	c.String(http.StatusOK, "%s", text)
	return nil
}

// showRobots lets crawlers read the documentation and nothing else.
func (p *documents) showRobots(c *gin.Context) error {
	c.Header("Cache-Control", "public, max-age=86400")
	c.String(http.StatusOK, "User-agent: *\nAllow: /docs\nDisallow: /\n")
	return nil
}

func (p *documents) showAsset(c *gin.Context) error {
	name := strings.TrimPrefix(c.Request.URL.Path, static.Prefix)
	asset, ok := p.assets.Find(name)
	if !ok {
		if asset, ok = p.branding[name]; !ok {
			return problem.NotFound()
		}
		c.Header("Content-Security-Policy", brandPolicy)
	}
	asset.ServeHTTP(c.Writer, c.Request)
	return nil
}

// brandPolicy is the policy of a logo that a browser opens as a page. An SVG may have style, but it
// runs no script, loads nothing and has the origin of nobody.
const brandPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"

// brandAssets returns the files of a brand by their names, and what the pages need of it.
func brandAssets(b brand.Brand) (map[string]static.Asset, templates.Brand) {
	files, look := map[string]static.Asset{}, templates.Brand{HomeURL: b.HomeURL}
	add := func(name, extension, contentType string, content []byte) string {
		file, asset := static.NewHashed(name, extension, contentType, content)
		files[file] = asset
		return static.Prefix + file
	}
	if b.Logo != nil {
		look.LogoType = b.Logo.ContentType
		look.Logo = add("logo", b.Logo.Extension, b.Logo.ContentType, b.Logo.Content)
	}
	if b.Accent != nil {
		look.Accent = add("accent", ".css", "text/css; charset=utf-8", []byte(b.Accent.Stylesheet()))
	}
	return files, look
}

// negotiate sends the page as Markdown to a client that prefers it, and otherwise as HTML.
func (s *site) negotiate(c *gin.Context, page templates.Page, markdown func() ([]byte, error)) error {
	c.Writer.Header().Add("Vary", "Accept")
	if prefersMarkdown(c) {
		return sendMarkdown(c, markdown)
	}
	return s.sendPage(c, http.StatusOK, page)
}

func sendMarkdown(c *gin.Context, markdown func() ([]byte, error)) error {
	text, err := markdown()
	if err != nil {
		return err
	}
	sendAs(c, http.StatusOK, "text/markdown; charset=utf-8", text) // RFC 7763
	return nil
}

// prefersMarkdown reports whether the client accepts Markdown at least as much as HTML (RFC 9110,
// section 12.5.1). If it accepts both equally, it must name Markdown, because browsers and curl
// accept everything.
func prefersMarkdown(c *gin.Context) bool {
	accepted := middleware.AcceptedBy(c.Request)
	markdown, named := accepted.Quality("text/markdown")
	html, _ := accepted.Quality("text/html")
	return markdown > html || named && markdown == html && markdown > 0
}
