package middleware

import (
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"
)

// contentSecurityPolicy allows what this origin serves as a file, and nothing
// else: no inline script or style, no frame, no form that leads elsewhere.
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

// permissionsPolicy turns off what no page here asks for. Writing to the
// clipboard stays: "Copy key" needs it.
const permissionsPolicy = "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"

// SecurityHeaders sets the headers that bound what a browser does with an
// answer. Referrer-Policy is same-origin and not no-referrer, under which
// browsers send "Origin: null" with our own forms, and [CrossOrigin] reads that.
// Strict-Transport-Security is sent where the public URL is https, for the names
// below it too (OWASP ASVS 5.0, 3.4.1).
func SecurityHeaders(baseURL *url.URL) gin.HandlerFunc {
	secure := baseURL.Scheme == "https"
	return func(c *gin.Context) {
		h := c.Writer.Header()
		h.Set("Content-Security-Policy", contentSecurityPolicy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", permissionsPolicy)
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		if secure {
			h.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
		}
	}
}
