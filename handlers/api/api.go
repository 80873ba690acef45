// Package api is the JSON API that customers' backends call with an API key, and the public
// documents beside it. Every error has the body {"error", "code"} of package problem.
//
// Under /api authentication comes first, even for a path without a route. The rate limit of the key
// comes next. The package never reads a cookie, never sends a CORS header, and never logs or
// repeats input.
package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models"
)

// Deps are the dependencies of the API.
type Deps struct {
	Store  *models.Store
	Tokens *models.WidgetTokens

	RateLimit RateLimit        // of each API key; zero: none
	Now       func() time.Time // the clock of the rate limit; nil: time.Now
	Stopping  <-chan struct{}  // closed when the server begins to stop; nil: never

	Registry prometheus.Registerer // for the metric of refusals
}

// API has the handlers of the JSON API.
type API struct {
	store   *models.Store
	tokens  *models.WidgetTokens
	limiter *rateLimiter // nil: no limit

	refusals *prometheus.CounterVec
	queries  middleware.Slots
	stopping <-chan struct{} // closed when the server begins to stop
}

// maxQueries is how many requests may use the database at once, besides authentication.
const maxQueries = 256

// New returns the API. It errs if the registry already has the metric of refusals.
func New(d Deps) (*API, error) {
	refusals := newRefusals()
	if err := d.Registry.Register(refusals); err != nil {
		return nil, fmt.Errorf("register the metric of refusals: %w", err)
	}
	return &API{
		store: d.Store, tokens: d.Tokens, limiter: newRateLimiter(d.RateLimit, d.Now),
		refusals: refusals, queries: middleware.NewSlots(maxQueries), stopping: d.Stopping,
	}, nil
}

// Register adds the routes to r.
func (a *API) Register(r gin.IRouter) {
	// Public.
	r.GET("/healthz", a.public(a.showHealth))
	r.GET("/readyz", a.public(a.showReadiness))
	r.GET("/openapi.json", a.public(a.showDescription))
	r.GET("/.well-known/jwks.json", a.public(a.showSigningKeys))

	// With an active API key.
	r.GET("/api/agents", a.keyed(a.listAgents))
	r.POST("/api/widget/token", a.keyed(a.createWidgetToken))
	r.POST("/api/widget/introspect", a.keyed(a.introspectWidgetToken))
}

// Owns reports whether path is under /api, where this package also handles paths without a route.
// The portal's /api-keys is not under /api.
func Owns(path string) bool {
	return path == "/api" || strings.HasPrefix(path, "/api/")
}

// NotFound handles a path under /api without a route.
func (a *API) NotFound(c *gin.Context) {
	a.keyed(func(*gin.Context, models.Principal) error { return problem.NotFound() })(c)
}

// MethodNotAllowed handles a method that a route under /api does not have. The router has set the
// Allow header; only authenticated callers receive it.
func (a *API) MethodNotAllowed(c *gin.Context) {
	allow := c.Writer.Header().Get("Allow")
	c.Writer.Header().Del("Allow")
	a.keyed(func(c *gin.Context, _ models.Principal) error {
		c.Header("Allow", allow)
		return problem.MethodNotAllowed()
	})(c)
}

// handler writes a response or returns an error.
type handler func(*gin.Context) error

// keyedHandler is a handler that requires an API key. Its Principal parameter comes only from
// authentication, so no route can skip that.
type keyedHandler func(*gin.Context, models.Principal) error

// public adapts a handler and renders its error.
func (a *API) public(h handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := h(c); err != nil {
			Render(c, err)
		}
	}
}

// keyed adapts a handler that requires an active API key. The rate limit comes after
// authentication, so that a caller without the key can neither use nor see its limit.
func (a *API) keyed(h keyedHandler) gin.HandlerFunc {
	return a.public(func(c *gin.Context) error {
		c.Header("Cache-Control", "no-store")
		caller, err := a.authenticate(c)
		if err != nil {
			return err
		}
		if err := a.limit(c, caller); err != nil {
			return err
		}
		return h(c, caller)
	})
}

// errorBody is the body of every error: exactly these two fields (spec section 7).
type errorBody struct {
	Error string `json:"error"`
	Code  string `json:"code"`
}

// Render writes err as the response. The cause of a 5xx goes to the log only.
func Render(c *gin.Context, err error) {
	p := problem.From(err)
	if p.Status >= http.StatusInternalServerError {
		_ = c.Error(err) // returns err
	}
	c.Header("Cache-Control", "no-store")
	if seconds := p.RetryAfterSeconds(); seconds != "" {
		c.Header("Retry-After", seconds)
	}
	// Pure, because HTML escaping would make <API_KEY> unreadable in a terminal.
	c.AbortWithStatusPureJSON(p.Status, errorBody{Error: p.Message, Code: p.Code})
}

// withTimeout returns the request's context with the time limit of the database, less the time that
// the request has already waited for the database. Handlers call it after they read the body, so
// that a slow client does not use up the limit.
func withTimeout(c *gin.Context, waited time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request.Context(), models.Timeout-waited)
}
