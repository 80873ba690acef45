package middleware

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
)

// CrossOrigin refuses unsafe requests that a browser sends from another origin, as Sec-Fetch-Site
// and Origin say, logs the cause, and renders the error with render. The origin of the base URL is
// trusted, whatever Host a proxy sends. Requests with neither header do not come from a browser and
// pass.
func CrossOrigin(base *url.URL, render Render) gin.HandlerFunc {
	protection, own := http.NewCrossOriginProtection(), Origin(base)
	_ = protection.AddTrustedOrigin(own) // fails only for what is no origin
	return func(c *gin.Context) {
		if err := protection.Check(c.Request); err != nil {
			header, sent := "Sec-Fetch-Site", c.GetHeader("Sec-Fetch-Site")
			if sent == "" {
				header, sent = "Origin", c.GetHeader("Origin")
			}
			_ = c.Error(fmt.Errorf("the form is from another site, because %s is %.200q; the portal's origin is %s", header, sent, own))
			render(c, problem.CrossOrigin(err))
			c.Abort()
		}
	}
}

// Origin returns the origin of a URL as browsers send it: in small letters, and without the usual
// port of the scheme.
func Origin(base *url.URL) string {
	host := strings.ToLower(base.Host)
	if usual := map[string]string{"http": "80", "https": "443"}[base.Scheme]; base.Port() == usual {
		host = strings.TrimSuffix(host, ":"+usual)
	}
	return base.Scheme + "://" + host
}
