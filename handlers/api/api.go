// Package api is the JSON voice: what customers' backends call with an API key,
// and the few public documents beside it. Every error leaves it as the body
// {"error", "code"} of package problem.
//
// Under /api authentication comes before everything else, an address nothing
// answers to included, and the limit of the key's rate comes next. The package
// never reads a cookie, never sends a CORS header and never logs or repeats what
// a caller sent.
package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
)

// Deps is what the API is built from.
type Deps struct {
	Store  *models.Store
	Tokens *models.WidgetTokens // to issue and verify

	RateLimit RateLimit        // of each API key; zero: none
	Now       func() time.Time // the clock of the limit; nil: time.Now
}

// API answers requests from one store.
type API struct {
	store   *models.Store
	tokens  *models.WidgetTokens
	limiter *rateLimiter // nil: no limit
}

// New returns the API over d.Store.
func New(d Deps) *API {
	return &API{store: d.Store, tokens: d.Tokens, limiter: newRateLimiter(d.RateLimit, d.Now)}
}

// Register adds the routes to r, grouped by who may call.
func (a *API) Register(r gin.IRouter) {
	// Anyone.
	r.GET("/healthz", a.public(a.showHealth))
	r.GET("/readyz", a.public(a.showReadiness))
	r.GET("/openapi.json", a.public(a.showDescription))
	r.GET("/.well-known/jwks.json", a.public(a.showSigningKeys))

	// Who holds an active API key.
	r.GET("/api/agents", a.keyed(a.listAgents))
	r.POST("/api/widget/token", a.keyed(a.createWidgetToken))
	r.POST("/api/widget/introspect", a.keyed(a.introspectWidgetToken))
}

// Owns tells whether path is under /api, where this package answers even when
// there is no route. The portal's own /api-keys is not.
func Owns(path string) bool {
	return path == "/api" || strings.HasPrefix(path, "/api/")
}

// NotFound answers for an address under /api that has no route.
func (a *API) NotFound(c *gin.Context) {
	a.keyed(func(*gin.Context, models.Principal) error { return problem.NotFound() })(c)
}

// MethodNotAllowed answers for a method that a route under /api does not have.
// The Allow header, which the router has set by now, is for those alone who may
// know the routes: it is sent with the 405 and not with a refusal.
func (a *API) MethodNotAllowed(c *gin.Context) {
	allow := c.Writer.Header().Get("Allow")
	c.Writer.Header().Del("Allow")
	a.keyed(func(c *gin.Context, _ models.Principal) error {
		c.Header("Allow", allow)
		return problem.MethodNotAllowed()
	})(c)
}

// handler answers a request or returns why it cannot.
type handler func(*gin.Context) error

// keyedHandler is a handler for the holder of an API key. It takes what only
// authentication can give, so that it cannot be reached around it.
type keyedHandler func(*gin.Context, models.Principal) error

// public adapts a handler that anyone may call.
func (a *API) public(h handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := h(c); err != nil {
			Render(c, err)
		}
	}
}

// keyed adapts a handler for the holder of an active API key. The limit comes
// after authentication: whoever has no key can neither use up nor see what is
// left of somebody else's.
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

// errorBody is what every error looks like: exactly these two fields (spec
// section 7).
type errorBody struct {
	Error string `json:"error"`
	Code  string `json:"code"`
}

// Render tells the caller of err, and leaves the cause of a 5xx for the log.
func Render(c *gin.Context, err error) {
	p := problem.From(err)
	if p.Status >= http.StatusInternalServerError {
		_ = c.Error(err) // returns what it was given
	}
	c.Header("Cache-Control", "no-store")
	if seconds := p.RetryAfterSeconds(); seconds != "" {
		c.Header("Retry-After", seconds)
	}
	// Pure: escaping < for HTML would spoil <API_KEY> for who reads it in a terminal.
	c.AbortWithStatusPureJSON(p.Status, errorBody{Error: p.Message, Code: p.Code})
}

// databaseContext bounds what a handler asks of the database. Its time begins
// when it is called, which is after the body was read, so that a slow caller is
// not taken for a slow database; but what the request has waited for it counts.
func databaseContext(c *gin.Context, waited time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request.Context(), models.Timeout-waited)
}
