package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models/modelstest"
)

func TestSecurityHeadersAreStrict(t *testing.T) {
	headers := securityHeaders(t, "http://127.0.0.1:8080")
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy":           "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
		"Referrer-Policy":              "same-origin",
		"X-Content-Type-Options":       "nosniff",
	} {
		if got := headers.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestTransportSecurityIsSentForAnHTTPSBaseURL(t *testing.T) {
	for baseURL, want := range map[string]string{
		"http://127.0.0.1:8080":      "",
		"https://portal.example.com": "max-age=31536000; includeSubDomains",
	} {
		if got := securityHeaders(t, baseURL).Get("Strict-Transport-Security"); got != want {
			t.Errorf("%s: %q, want %q", baseURL, got, want)
		}
	}
}

func TestCrossSiteFormsAreRefused(t *testing.T) {
	engine := newEngine(middleware.CrossOrigin(func(c *gin.Context, err error) { c.Status(problem.From(err).Status) }))
	engine.Any("/", func(c *gin.Context) { c.Status(http.StatusOK) })
	for name, sent := range map[string]struct {
		method string
		header http.Header
		want   int
	}{
		"our own form": {http.MethodPost, http.Header{"Sec-Fetch-Site": {"same-origin"}}, http.StatusOK},
		"our own, older browser": {
			http.MethodPost, http.Header{"Origin": {"http://example.com"}}, http.StatusOK,
		},
		"no browser":               {http.MethodPost, http.Header{}, http.StatusOK},
		"a link on another site":   {http.MethodGet, http.Header{"Sec-Fetch-Site": {"cross-site"}}, http.StatusOK},
		"another site's form":      {http.MethodPost, http.Header{"Sec-Fetch-Site": {"cross-site"}}, http.StatusForbidden},
		"another subdomain's form": {http.MethodPost, http.Header{"Sec-Fetch-Site": {"same-site"}}, http.StatusForbidden},
		"another, older browser": {
			http.MethodPost, http.Header{"Origin": {"http://elsewhere.example"}}, http.StatusForbidden,
		},
		"a form without an origin": {http.MethodPost, http.Header{"Origin": {"null"}}, http.StatusForbidden},
	} {
		r := httptest.NewRequest(sent.method, "http://example.com/", http.NoBody)
		r.Header = sent.header
		if got := serve(engine, r).Code; got != sent.want {
			t.Errorf("%s: status %d, want %d", name, got, sent.want)
		}
	}
}

func securityHeaders(t *testing.T, base string) http.Header {
	t.Helper()
	baseURL, err := url.Parse(base)
	modelstest.Must(t, err)
	engine := newEngine(middleware.SecurityHeaders(baseURL, func(string) bool { return true }))
	return serve(engine, httptest.NewRequest(http.MethodGet, "/", http.NoBody)).Header()
}
