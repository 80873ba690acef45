package portal

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"portal/handlers/portal/reference"
	"portal/templates"
)

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

// showReference shows the API reference.
func (p *Portal) showReference(c *gin.Context) error {
	d, err := p.documentation()
	if err != nil {
		return err
	}
	return p.sendPage(c, http.StatusOK, d.reference)
}

// showGuides shows the guides for backend developers.
func (p *Portal) showGuides(c *gin.Context) error {
	d, err := p.documentation()
	if err != nil {
		return err
	}
	return p.sendPage(c, http.StatusOK, d.guides)
}

// showChangelog shows the changes of the API.
func (p *Portal) showChangelog(c *gin.Context) error {
	d, err := p.documentation()
	if err != nil {
		return err
	}
	return p.sendPage(c, http.StatusOK, d.changelog)
}
