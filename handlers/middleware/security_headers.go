package middleware

import (
	"maps"
	"net/http"
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
//
// Where page says that no page is served at a path, a browser is told only what
// concerns any answer: the rest is for documents, and a quarter of the bytes of
// an answer to a backend.
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
		// The values are shared: whoever sets another puts a new slice there.
		maps.Copy(c.Writer.Header(), headers)
	}
}
