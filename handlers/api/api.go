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

func (a *API) registerOperator(r gin.IRouter) {
	g := r.Group(operatorPath)
	g.GET("/accounts", a.operated(a.listAccounts))
	g.GET("/accounts/:account", a.operated(a.showAccount))
	g.PUT("/accounts/:account", a.operated(a.putAccount))
	g.GET("/accounts/:account/agents", a.operated(a.listAccountAgents))
	g.PUT("/accounts/:account/agents/:agent", a.operated(a.putAgent))
	g.DELETE("/accounts/:account/agents/:agent", a.operated(a.removeAgent))
	g.GET("/accounts/:account/users", a.operated(a.listUsers))
	g.POST("/accounts/:account/users", a.operated(a.addUser))
	g.DELETE("/accounts/:account/users/:user", a.operated(a.removeUser))
	g.POST("/accounts/:account/sign-in-links", a.operated(a.createSignInLink))
	g.GET("/accounts/:account/keys", a.operated(a.listKeys))
	g.POST("/keys/revocations", a.operated(a.revokeKey))
}

// registerLeaks adds the routes of the doors that are open.
func (a *API) registerLeaks(r gin.IRouter) {
	r.POST(leaksPath, a.leak(models.LeakPublic, a.reportLeaks))
	for _, partner := range a.leaks.partners {
		r.POST(leaksPath+"/"+string(partner.source), a.leak(partner.source, func(c *gin.Context) error {
			return a.reportPartnerLeaks(c, partner)
		}))
	}
	if a.leaks.gitLabToken != nil {
		r.GET(leaksPath+"/v1/revocable_token_types", a.leak(models.LeakGitLab, a.listRevocableTypes))
		r.POST(leaksPath+"/v1/revoke_tokens", a.leak(models.LeakGitLab, a.revokeLeakedTokens))
	}
}
