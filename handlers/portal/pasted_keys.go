package portal

import (
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/templates"
)

// filterAPIKeys redirects to the filtered list. The filter is sent with POST, because browsers and
// proxies store URLs, and a user may paste a key into the filter.
func (p *Portal) filterAPIKeys(c *gin.Context) error {
	return p.redirect(c, newKeyView(c.Request.PostForm).address())
}

// redactQuery redirects a GET whose query contains an API key to the same page without the key.
func (p *Portal) redactQuery(c *gin.Context) {
	if c.Request.Method != http.MethodGet {
		return
	}
	redacted, changed := url.Values{}, false
	for name, values := range c.Request.URL.Query() {
		for _, value := range values {
			without, whole := models.RedactKeys(value)
			redacted.Add(name, without)
			changed = changed || without != value
			if whole && name == paramFilter {
				redacted.Set(paramWhole, "yes")
			}
		}
	}
	if !changed {
		return
	}
	if err := p.redirect(c, (&url.URL{Path: c.Request.URL.Path, RawQuery: redacted.Encode()}).String()); err != nil {
		p.Render(c, err)
	}
	c.Abort()
}

// pastedKey returns the active key that was pasted into the filter. The filter keeps its last four
// characters only. It returns nil if no whole key was pasted.
func pastedKey(view keyView, keys []models.APIKey) *templates.PastedKey {
	if !view.whole {
		return nil
	}
	pasted := templates.PastedKey{LastFour: view.filter}
	for _, key := range keys {
		if key.LastFour == view.filter {
			pasted.ID = key.ID
			pasted.Matches++
		}
	}
	return &pasted
}
