package portal

import (
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
)

// securityContactAge is how long a copy of security.txt is valid. RFC 9116 recommends less than a
// year.
const securityContactAge = 180 * 24 * time.Hour

// showSecurityContact serves security.txt (RFC 9116). It returns a 404 if there is no contact.
func (p *Portal) showSecurityContact(c *gin.Context) error {
	if p.securityContact == "" {
		return problem.NotFound()
	}
	expires := p.now().UTC().Truncate(24 * time.Hour).Add(securityContactAge)
	text := fmt.Sprintf("Contact: %s\nExpires: %s\nPreferred-Languages: en\n", p.securityContact, expires.Format(time.RFC3339))
	if p.baseURL.Scheme == "https" { // Canonical must be an https URL
		text += fmt.Sprintf("Canonical: %s\n", p.baseURL.JoinPath(c.FullPath()))
	}
	c.Header("Cache-Control", "public, max-age=86400")
	c.String(http.StatusOK, "%s", text)
	return nil
}
