package portal

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"portal/handlers/portal/reference"
	"portal/handlers/problem"
	"portal/static"
	"portal/templates"
)

// documents are the files and pages that need no session.
type documents struct {
	*site

	assets          *static.Assets
	securityContact string
	// documentation returns the pages about the API. The first call builds them, so that the
	// start is fast.
	documentation func() (documentation, error)
}

func newDocuments(d Deps, s *site, assets *static.Assets) documents {
	return documents{s, assets, d.SecurityContact, sync.OnceValues(func() (documentation, error) {
		return newDocumentation(d.OpenAPI, d.Changelog, d.BaseURL)
	})}
}

// documentation holds the public pages about the API. They are the same for everyone.
type documentation struct {
	reference templates.ReferencePage
	guides    templates.GuidesPage
	changelog templates.ChangelogPage
}

// newDocumentation reads the OpenAPI document and the changelog of the API.
func newDocumentation(openapi []byte, changelog string, baseURL *url.URL) (documentation, error) {
	var d documentation
	var err error
	if d.reference, err = reference.New(openapi, baseURL.String()); err != nil {
		return d, fmt.Errorf("API reference: %w", err)
	}
	if d.changelog.Releases, err = reference.Changelog(changelog); err != nil {
		return d, fmt.Errorf("API reference: %w", err)
	}
	d.guides = templates.NewGuidesPage(baseURL.String())
	for _, code := range d.reference.Errors {
		if code.Status == "401" {
			d.guides.Unauthorized = code.Messages
		}
	}
	contents := templates.NewContents(d.reference, d.changelog)
	d.reference.Contents, d.guides.Contents, d.changelog.Contents = contents, contents, contents
	return d, nil
}

// show returns the handler of one of the pages about the API.
func (p *documents) show(page func(documentation) templates.Page) handler {
	return func(c *gin.Context) error {
		built, err := p.documentation()
		if err != nil {
			return err
		}
		return p.sendPage(c, http.StatusOK, page(built))
	}
}

// securityContactAge is how long a copy of security.txt is valid. RFC 9116 recommends less than a
// year.
const securityContactAge = 180 * 24 * time.Hour

// showSecurityContact serves security.txt (RFC 9116). It returns a 404 if there is no contact.
func (p *documents) showSecurityContact(c *gin.Context) error {
	if p.securityContact == "" {
		return problem.NotFound()
	}
	expires := p.now().UTC().Truncate(24 * time.Hour).Add(securityContactAge)
	text := fmt.Sprintf("Contact: %s\nExpires: %s\nPreferred-Languages: en\n", p.securityContact, expires.Format(time.RFC3339))
	if p.baseURL.Scheme == "https" { // Canonical must be an https URL
		text += fmt.Sprintf("Canonical: %s\n", p.url(c.FullPath()))
	}
	c.Header("Cache-Control", "public, max-age=86400")
	c.String(http.StatusOK, "%s", text)
	return nil
}

func (p *documents) showAsset(c *gin.Context) error {
	asset, ok := p.assets.Find(strings.TrimPrefix(c.Request.URL.Path, static.Prefix))
	if !ok {
		return problem.NotFound()
	}
	asset.ServeHTTP(c.Writer, c.Request)
	return nil
}
