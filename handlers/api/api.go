// Package api is the JSON API that customers' backends call with an API key, the operator API that
// the platform calls with the operator token, and the public documents beside them. Every error has
// the body {"error", "code"} of package problem.
//
// Under /api authentication comes first, even for a path without a route, and the rate limit of the
// key next. The package never reads a cookie, never sends a CORS header, and never logs or repeats
// input.
package api

import (
	"context"
	"net/http"
	"net/netip"
	"runtime"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models"
	"portal/models/livekit"
	"portal/models/widget"
)

// API has the handlers of the JSON API.
type API struct {
	store   *models.Store
	tokens  *widget.Tokens
	liveKit *livekit.Server // nil: off

	// Nil: no limit.
	keyLimit, tokenLimit, accountLimit *rateLimiter

	operator   *sharedToken // nil: the operator API is off
	signInLink func(token string) string

	leaks *leakDoors

	trusted  []netip.Prefix // proxies
	refusals *prometheus.CounterVec
	queries  middleware.Slots
	signing  chan struct{}   // holds an entry for each request that signs
	stopping <-chan struct{} // closed when the server begins to stop
}

// maxQueries limits how many requests use the database at once, besides authentication.
const maxQueries = 256

// New returns the API, or an error if a trusted proxy is no network. It panics if the registry
// already has the metrics. The function signInLink returns the URL of a sign-in link with a token.
func New(d deps.Deps, signInLink func(token string) string) (*API, error) {
	trusted, err := parseProxies(d.TrustedProxies)
	if err != nil {
		return nil, err
	}
	ofAccount := middleware.RateLimit{PerSecond: accountTokens * d.RateLimit.PerSecond, Burst: accountTokens * d.RateLimit.Burst}
	return &API{
		store: d.Store, tokens: d.Tokens, liveKit: d.LiveKit,
		keyLimit:     newRateLimiter("key", "with this API key", d.RateLimit, d.Now),
		tokenLimit:   newRateLimiter("token", "with this widget token", d.RateLimit, d.Now),
		accountLimit: newRateLimiter("account", "with the widget tokens of this account", ofAccount, d.Now),
		operator:     newSharedToken(d.OperatorToken), signInLink: signInLink,
		leaks: newLeakDoors(d), trusted: trusted, refusals: newRefusals(d.Registry), stopping: d.Stopping,
		queries: middleware.NewSlots(maxQueries), signing: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}, nil
}

// Paths that the discovery documents name.
const (
	signingKeysPath   = "/.well-known/jwks.json"
	introspectionPath = "/api/widget/introspect"
)

// descriptionPath is the path of the OpenAPI document.
const descriptionPath = "/openapi.json"

// Register adds the routes to r.
func (a *API) Register(r gin.IRouter) {
	// Public.
	r.GET("/healthz", a.public(a.showHealth))
	r.GET("/readyz", a.public(a.showReadiness))
	r.GET(descriptionPath, a.public(a.showDescription))
	r.GET(signingKeysPath, a.public(a.showSigningKeys))
	r.GET("/.well-known/oauth-authorization-server", a.public(a.showDiscovery))
	r.GET("/.well-known/openid-configuration", a.public(a.showDiscovery))

	// For reports of leaked keys.
	a.registerLeaks(r)

	// For gateways, with any method.
	gateway(r, authorizePath, a.keyed(a.authorizeKey))
	gateway(r, authorizeWidgetPath, a.public(a.authorizeWidget))

	// With an active API key.
	r.GET("/api/agents", a.keyed(a.listAgents))
	r.GET("/api/key", a.keyed(a.showKey))
	r.POST("/api/widget/token", a.keyed(a.createWidgetToken))
	r.POST(introspectionPath, a.keyed(a.introspectWidgetToken))

	// With the operator token.
	if a.operator != nil {
		a.registerOperator(r)
	}
}

// Owns reports whether path is under /api, /operator, /leaks or /widget/authorize, where this
// package also handles paths without a route. So it is false for the portal's /api-keys.
func Owns(path string) bool {
	return under(path, "/api") || under(path, operatorPath) || under(path, leaksPath) || under(path, authorizeWidgetPath)
}

// NotFound handles a path without a route that this package owns.
func (a *API) NotFound(c *gin.Context) {
	a.authenticated(c, func(*gin.Context) error { return problem.NotFound() })
}

// MethodNotAllowed handles a request whose path this package owns, but whose method has no route.
// Only authenticated callers receive the Allow header that the router has set.
func (a *API) MethodNotAllowed(c *gin.Context) {
	allow := c.Writer.Header().Get("Allow")
	c.Writer.Header().Del("Allow")
	a.authenticated(c, func(c *gin.Context) error {
		c.Header("Allow", allow)
		return problem.MethodNotAllowed()
	})
}

// authenticated calls h if the caller may use the API that owns the path.
func (a *API) authenticated(c *gin.Context, h handler) {
	switch path := c.Request.URL.Path; {
	case under(path, operatorPath):
		a.operated(h)(c)
	case under(path, leaksPath):
		a.public(h)(c)
	default:
		a.keyed(func(c *gin.Context, _ models.Principal) error { return h(c) })(c)
	}
}

// handler writes a response or returns an error.
type handler func(*gin.Context) error

// keyedHandler is a handler that requires an API key. Only authentication returns a Principal, so
// no route can skip authentication.
type keyedHandler func(*gin.Context, models.Principal) error

// public adapts a handler and renders its error.
func (a *API) public(h handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := h(c); err != nil {
			Render(c, err)
		}
	}
}

// keyed adapts a handler that requires an active API key. Because a caller without the key must
// neither use nor see its limit, the rate limit comes after authentication.
func (a *API) keyed(h keyedHandler) gin.HandlerFunc {
	return a.public(func(c *gin.Context) error {
		c.Header("Cache-Control", "no-store")
		address := a.clientAddress(c)
		caller, err := a.authenticate(c, address)
		if err != nil {
			return err
		}
		err = a.serve(c, caller, address, h)
		if err != nil && problem.From(err).Status == http.StatusForbidden {
			a.countRefusal(err)
			a.store.API.CountRefusal(caller)
		}
		return err
	})
}

// serve calls h if the key is accepted from the address and has not reached its limit.
func (a *API) serve(c *gin.Context, caller models.Principal, address netip.Addr, h keyedHandler) error {
	if !caller.AllowsAddress(address) {
		return models.ErrAddressNotAllowed
	}
	if err := a.keyLimit.limit(c, caller.KeyID); err != nil {
		return err
	}
	return h(c, caller)
}

// errorBody is the body of every error: exactly these two fields.
type errorBody struct {
	Error string `json:"error"`
	Code  string `json:"code"`
}

// Render writes err as the response, and the cause of a 5xx to the log only.
func Render(c *gin.Context, err error) {
	p := problem.From(err)
	if p.Status >= http.StatusInternalServerError {
		_ = c.Error(err) // for the log
	}
	middleware.SetCode(c, p.Code)
	c.Header("Cache-Control", "no-store")
	if p.Reason != "" {
		c.Header("X-Error-Reason", p.Reason)
	}
	if seconds := p.RetryAfterSeconds(); seconds != "" {
		c.Header("Retry-After", seconds)
	}
	// HTML escaping would make <API_KEY> unreadable in a terminal.
	c.AbortWithStatusPureJSON(p.Status, errorBody{Error: p.Message, Code: p.Code})
}

// withTimeout returns the request's context with the time limit of the database, less the time that
// the request has already waited for the database. Handlers call it after they read the body, so
// that a slow client does not use up the limit.
func (a *API) withTimeout(c *gin.Context, waited time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request.Context(), a.store.Timeout()-waited)
}
