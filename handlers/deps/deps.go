// Package deps has what the portal and the JSON API get from the command: opened things and
// settings.
package deps

import (
	"log/slog"
	"net/netip"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"portal/handlers/brand"
	"portal/handlers/middleware"
	"portal/handlers/portal/identity"
	"portal/models"
	"portal/models/livekit"
	"portal/models/widget"
)

// Deps are the dependencies of the handlers.
type Deps struct {
	Store    *models.Store
	Logger   *slog.Logger
	Registry *prometheus.Registry // for the metrics, which it must not have yet
	Tracer   trace.Tracer         // for spans of requests; nil: none
	Now      func() time.Time     // the clock; nil: time.Now
	Stopping <-chan struct{}      // closed when the server begins to stop; nil: never

	BaseURL        *url.URL       // the public URL; under https cookies are Secure
	TrustedProxies []netip.Prefix // whose X-Forwarded-For is trusted

	CookieKeys      [][]byte         // of 32 bytes; the first signs, all verify
	SessionMax      time.Duration    // lifetime of the session cookie
	Provider        *identity.Config // the OpenID Connect provider; nil: none
	PasswordsOff    bool             // nobody signs in with a password
	Name            string           // of the product
	Notice          string           // stands above every page; may be empty
	Brand           brand.Brand      // of the platform
	SupportURL      string           // leads users to help; may be empty
	SecurityContact string           // URL in security.txt; empty: no security.txt

	Tokens    *widget.Tokens
	LiveKit   *livekit.Server      // nil: no LiveKit tokens
	RateLimit middleware.RateLimit // of each API key and of each widget token; zero: none
	// Opens the operator API; empty: every path under /operator is a 404.
	OperatorToken string
	// URL of the public keys of GitHub's secret scanning, whose reports revoke keys; empty:
	// off.
	GitHubKeysURL string

	OperatorTokenPrevious string // accepted too
}
