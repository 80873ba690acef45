package middleware

import (
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"
)

// contentSecurityPolicy allows files and forms of this origin only, and no inline script or style.
var contentSecurityPolicy = strings.Join([]string{
	"default-src 'none'",
	"script-src 'self'",
	"style-src 'self'",
	"img-src 'self'",
	"connect-src 'self'",
	"form-action 'self'",
	"base-uri 'none'",
	"frame-ancestors 'none'",
	"object-src 'none'",
}, "; ")

// permissionsPolicy turns off features that no page uses. "Copy key" needs clipboard-write.
const permissionsPolicy = "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"

// SecurityHeaders sets the security headers of a response. Strict-Transport-Security is set if the
// public URL is https, and includes subdomains (OWASP ASVS 5.0, 3.4.1). Referrer-Policy is
// same-origin: with no-referrer, browsers send "Origin: null" with our own forms, which
// [CrossOrigin] refuses.
//
// Responses for which page returns false omit the headers that matter only for documents. Those
// headers would be a quarter of the bytes of an API response.
func SecurityHeaders(baseURL *url.URL, page func(path string) bool) gin.HandlerFunc {
	all := http.Header{
		"Content-Security-Policy": {"default-src 'none'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'"},
		"Referrer-Policy":         {"same-origin"},
		"X-Content-Type-Options":  {"nosniff"},
	}
	if baseURL.Scheme == "https" {
		all.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
	}
	pages := all.Clone()
	pages.Set("Content-Security-Policy", contentSecurityPolicy)
	pages.Set("Cross-Origin-Opener-Policy", "same-origin")
	pages.Set("Cross-Origin-Resource-Policy", "same-origin")
	pages.Set("Permissions-Policy", permissionsPolicy)
	return func(c *gin.Context) {
		headers := all
		if page(c.Request.URL.Path) {
			headers = pages
		}
		// All responses share these slices. Header.Set replaces a slice and never changes
		// it.
		maps.Copy(c.Writer.Header(), headers)
	}
}
