package portal

import (
	"fmt"
	"net/http"
	"strings"
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

	assets *static.Assets
	// documentation returns the pages about the API.
	documentation func() ([]templates.DocumentationPage, error)
}

// newDocumentation reads the OpenAPI document and the changelog of the API. It is slow, so the start
// does not wait for it.
func (s *site) newDocumentation(openAPI []byte, changelog string) ([]templates.DocumentationPage, error) {
	d := templates.Documentation{Guides: templates.NewGuides(s.BaseURL.String()), Operated: s.OperatorToken != ""}
	var err error
	if d.Reference, err = reference.New(openAPI, s.BaseURL.String()); err != nil {
		return nil, fmt.Errorf("API reference: %w", err)
	}
	if d.Releases, err = reference.Changelog(changelog); err != nil {
		return nil, fmt.Errorf("API reference: %w", err)
	}
	for _, code := range d.Reference.Errors {
		if code.Status == "401" {
			d.Guides.Unauthorized = code.Messages
		}
	}
	return templates.NewDocumentation(d), nil
}

// show shows a page about the API.
func (p *documents) show(c *gin.Context) error {
	pages, err := p.documentation()
	if err != nil {
		return err
	}
	for _, page := range pages {
		if page.Path == c.FullPath() {
			return p.sendPage(c, http.StatusOK, page)
		}
	}
	return problem.NotFound()
}

// securityContactAge is how long a copy of security.txt is valid. RFC 9116 recommends less than a
// year.
const securityContactAge = 180 * 24 * time.Hour

// showSecurityContact serves security.txt (RFC 9116), or a 404 if there is no contact.
func (p *documents) showSecurityContact(c *gin.Context) error {
	if p.SecurityContact == "" {
		return problem.NotFound()
	}
	expires := p.Now().UTC().Truncate(24 * time.Hour).Add(securityContactAge)
	text := fmt.Sprintf("Contact: %s\nExpires: %s\nPreferred-Languages: en\n", p.SecurityContact, expires.Format(time.RFC3339))
	if p.BaseURL.Scheme == "https" { // Canonical must be an https URL
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
