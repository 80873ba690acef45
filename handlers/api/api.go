// Package api is the JSON API that customers' backends call with an API key, the operator API that
// the platform calls with the operator token, and the public documents beside them. Every error has
// the body {"error", "code"} of package problem.
//
// Under /api authentication comes first, even for a path without a route, and the rate limit of the
// key next. The package never reads a cookie, never sends a CORS header, and never logs or repeats
// input.
package api

import (
	"runtime"

	"github.com/gin-gonic/gin"

	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models"
)

// Endpoints are the endpoints of the JSON API, of the operator API and of the public documents.
type Endpoints struct {
	*site

	customers customers
	widgets   widgetTokens
	operators operators
	leaks     *leakReports
}

// New returns the endpoints. It panics if the registry already has the metrics. The function
// signInLink returns the URL of a sign-in link with a token.
func New(d deps.Deps, signInLink func(token string) string) *Endpoints {
	s := &site{d, middleware.NewSlots(maxQueries), newRefusals(d.Registry)}
	ofAccount := middleware.RateLimit{PerSecond: accountTokens * d.RateLimit.PerSecond, Burst: accountTokens * d.RateLimit.Burst}
	return &Endpoints{
		site:      s,
		customers: customers{s, newRateLimiter("key", "with this API key", d.RateLimit, d.Now)},
		widgets: widgetTokens{
			site:      s,
			ofToken:   newRateLimiter("token", "with this widget token", d.RateLimit, d.Now),
			ofAccount: newRateLimiter("account", "with the widget tokens of this account", ofAccount, d.Now),
			signing:   make(chan struct{}, runtime.GOMAXPROCS(0)),
		},
		operators: operators{s, newSharedToken(d.OperatorToken), signInLink},
		leaks:     newLeakReports(s),
	}
}

// Register adds the routes to r.
func (e *Endpoints) Register(r gin.IRouter) {
	// Public.
	r.GET("/healthz", handle(e.showHealth))
	r.GET("/readyz", handle(e.showReadiness))
	r.GET(descriptionPath, handle(e.showDescription))
	r.GET(signingKeysPath, handle(e.showSigningKeys))
	r.GET("/.well-known/oauth-authorization-server", handle(e.showDiscovery))
	r.GET("/.well-known/openid-configuration", handle(e.showDiscovery))
	e.registerLeaks(r, e.leaks)

	// For gateways, with any method.
	gateway(r, authorizePath, e.customers.handle(e.customers.authorize))
	gateway(r, authorizeWidgetPath, handle(e.widgets.authorize))

	// With an active API key.
	r.GET("/api/agents", e.customers.handle(e.customers.listAgents))
	r.GET("/api/key", e.customers.handle(e.customers.showKey))
	r.POST("/api/widget/token", e.customers.handle(e.widgets.create))
	r.POST(introspectionPath, e.customers.handle(e.widgets.introspect))

	// With the operator token.
	if e.operators.token != nil {
		e.registerOperators(r.Group(operatorPath), &e.operators)
	}
}

func (*Endpoints) registerLeaks(r gin.IRouter, leaks *leakReports) {
	r.POST(leaksPath, leaks.handle(models.LeakPublic, leaks.createPublic))
	for _, from := range leaks.scanners {
		r.POST(leaksPath+"/"+string(from.name), leaks.handle(from.name, func(c *gin.Context) error {
			return leaks.createSigned(c, from)
		}))
	}
	if leaks.gitLabToken != nil {
		r.GET(leaksPath+"/v1/revocable_token_types", leaks.handle(models.LeakGitLab, leaks.listRevocableTypes))
		r.POST(leaksPath+"/v1/revoke_tokens", leaks.handle(models.LeakGitLab, leaks.createGitLab))
	}
}

func (*Endpoints) registerOperators(r gin.IRouter, o *operators) {
	r.GET("/accounts", o.handle(o.listAccounts))
	r.GET("/accounts/:account", o.handle(o.showAccount))
	r.PUT("/accounts/:account", o.handle(o.putAccount))
	r.GET("/accounts/:account/agents", o.handle(o.listAgents))
	r.PUT("/accounts/:account/agents/:agent", o.handle(o.putAgent))
	r.DELETE("/accounts/:account/agents/:agent", o.handle(o.removeAgent))
	r.GET("/accounts/:account/users", o.handle(o.listUsers))
	r.POST("/accounts/:account/users", o.handle(o.addUser))
	r.DELETE("/accounts/:account/users/:user", o.handle(o.removeUser))
	r.POST("/accounts/:account/sign-in-links", o.handle(o.createSignInLink))
	r.GET("/accounts/:account/keys", o.handle(o.listKeys))
	r.POST("/keys/revocations", o.handle(o.revokeKey))
}

// NotFound handles a path without a route that this package owns.
func (e *Endpoints) NotFound(c *gin.Context) {
	e.authenticated(c, func(*gin.Context) error { return problem.NotFound() })
}

// MethodNotAllowed handles a request whose path this package owns, but whose method has no route.
// Only authenticated callers receive the Allow header that the router has set.
func (e *Endpoints) MethodNotAllowed(c *gin.Context) {
	allow := c.Writer.Header().Get("Allow")
	c.Writer.Header().Del("Allow")
	e.authenticated(c, func(c *gin.Context) error {
		c.Header("Allow", allow)
		return problem.MethodNotAllowed()
	})
}

// authenticated calls h if the caller may use the endpoints around the path.
func (e *Endpoints) authenticated(c *gin.Context, h handler) {
	switch path := c.Request.URL.Path; {
	case under(path, operatorPath):
		e.operators.handle(h)(c)
	case under(path, leaksPath):
		handle(h)(c)
	default:
		e.customers.handle(func(c *gin.Context, _ models.Principal) error { return h(c) })(c)
	}
}
