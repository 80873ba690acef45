package e2e

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// portalBehindTLS starts a portal for this test behind a proxy that terminates TLS. site is the
// proxy's URL.
func portalBehindTLS(t *testing.T) (p *process, site string) {
	t.Helper()
	target := &url.URL{Scheme: "http"}
	front := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(front.Close)
	p = ownPortal(t, settings{baseURL: front.URL})
	target.Host = p.settings.address
	return p, front.URL
}
