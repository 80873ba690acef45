// Package api is the JSON API that customers' backends call with an API key, the operator API that
// the platform calls with the operator token, and the public documents beside them. Every error has
// the body {"error", "code"} of package problem.
//
// Under /api authentication comes first, even for a path without a route, and the rate limit of the
// key next. The package never reads a cookie, never sends a CORS header, and never logs or repeats
// input.
package api

import (
	"net/http"
	"runtime"
	"strings"

	"github.com/gin-gonic/gin"

	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models/keys"
	"portal/models/record"
	"portal/static"
)

// Endpoints are the endpoints of the JSON API, of the operator API and of the public documents.
type Endpoints struct {
	*site

	api       *keys.API
	stopping  <-chan struct{} // closed when the server begins to stop
	customers customers
	widgets   widgetTokens
	operators operators
	leaks     *leakReports
	documents map[string]static.Asset // public, by path
	events    *callEvents
	exchanges *exchanges
}

// New returns the endpoints. It panics if the registry already has the metrics. The function
// signInLink returns the URL of a sign-in link with a token, which leads to a
// page; empty: the first one.
func New(d deps.Deps, signInLink func(token, page string) string) *Endpoints {
	store := d.Store
	s := &site{
		now: d.Now, timeout: store.Timeout(), issuers: store.Workload.Issuers(), callsOn: d.LiveKit != nil,
		queries: middleware.NewSlots(maxQueries), refusals: newRefusals(d.Registry),
	}
	ofAccount := middleware.RateLimit{PerSecond: accountTokens * d.RateLimit.PerSecond, Burst: accountTokens * d.RateLimit.Burst}
	return &Endpoints{
		site: s, api: store.API, stopping: d.Stopping,
		customers: customers{
			site: s, api: store.API, usage: store.Usage, agents: store.Agents, calls: store.Calls, activity: store.Activity, tokens: d.Tokens,
			limit:     newRateLimiter("key", "with this API key", d.RateLimit, d.Now),
			ofReports: newRateLimiter("account", "for reports of this account", reportRate, d.Now),
			reports:   middleware.NewSlotsOf(maxReports, reportWait, problem.TooManyReports()),
		},
		widgets: widgetTokens{
			site: s, api: store.API, agents: store.Agents, tokens: d.Tokens, liveKit: d.LiveKit,
			ofToken:   newRateLimiter("token", "with this widget token", d.RateLimit, d.Now),
			ofAccount: newRateLimiter("account", "with the widget tokens of this account", ofAccount, d.Now),
			signing:   make(chan struct{}, runtime.GOMAXPROCS(0)),
		},
		operators: operators{
			site: s, store: store, baseURL: d.BaseURL, token: newSharedToken(d.OperatorToken, d.OperatorTokenPrevious), signInLink: signInLink,
		},
		leaks:     newLeakReports(d),
		documents: newDocuments(d),
		events:    newCallEvents(s, d),
		exchanges: newExchanges(s, d),
	}
}

// Register adds the routes to r.
func (e *Endpoints) Register(r gin.IRouter) {
	// Public.
	r.GET(HealthPath, handle(e.showHealth))
	r.GET(ReadinessPath, handle(e.showReadiness))
	for path, document := range e.documents {
		r.GET(path, func(c *gin.Context) {
			allowAnyOrigin(c)
			document.ServeHTTP(c.Writer, c.Request)
		})
	}
	r.POST(leaksPath, e.leaks.handle(record.LeakPublic, e.leaks.createPublic))
	if e.leaks.scanner != nil {
		r.POST(leaksPath+"/github", e.leaks.handle(record.LeakGitHub, e.leaks.createSigned))
	}
	if !e.issuers.Off {
		r.POST(tokenPath, e.exchanges.handle)
	}
	if e.callsOn {
		r.POST(eventsPath, handle(e.events.create))
	}

	// For gateways, with any method.
	gateway(r, authorizePath, e.customers.handle(keys.AccessAgents, e.customers.authorize))
	gateway(r, authorizeWidgetPath, handle(e.widgets.authorize))

	for _, route := range e.keyed() {
		r.Handle(route.method, route.path, e.customers.handle(route.access, route.handler))
	}

	// With the operator token.
	if e.operators.token != nil {
		e.registerOperators(r.Group(operatorPath), &e.operators)
	}
}

// keyedRoute is a route that requires an active API key.
type keyedRoute struct {
	method, path string
	access       keys.Access // of the key; empty: any
	handler      keyedHandler
}

// keyed returns the routes with an API key. Every other path under /api needs the access agents.
func (e *Endpoints) keyed() []keyedRoute {
	cs := &e.customers
	return []keyedRoute{
		{http.MethodGet, "/api/agents", keys.AccessAgents, cs.listAgents},
		{http.MethodPost, "/api/widget/token", keys.AccessAgents, e.widgets.create},
		{http.MethodPost, introspectionPath, keys.AccessAgents, e.widgets.introspect},
		{http.MethodGet, "/api/activity", keys.AccessReports, cs.report(cs.listActivity)},
		{http.MethodGet, "/api/calls", keys.AccessReports, cs.report(cs.listCalls)},
		{http.MethodGet, "/api/usage", keys.AccessReports, cs.report(cs.listUsage)},
		{http.MethodGet, "/api/key", "", cs.showKey},
	}
}

// accessOf returns the access that a path under /api needs.
func (e *Endpoints) accessOf(path string) keys.Access {
	for _, route := range e.keyed() {
		if route.path == path {
			return route.access
		}
	}
	return keys.AccessAgents
}

func (*Endpoints) registerOperators(r gin.IRouter, o *operators) {
	r.GET("/accounts", o.handle(o.listAccounts))
	r.GET("/accounts/:account", o.handle(o.showAccount))
	r.PUT("/accounts/:account", o.handle(o.putAccount))
	if !o.issuers.Off {
		r.PUT("/accounts/:account/keys/:key", o.handle(o.putKey))
	}
	r.DELETE("/accounts/:account", o.handle(o.eraseAccount))
	r.GET("/accounts/:account/agents", o.handle(o.listAgents))
	r.PUT("/accounts/:account/agents/:agent", o.handle(o.putAgent))
	r.DELETE("/accounts/:account/agents/:agent", o.handle(o.removeAgent))
	r.GET("/accounts/:account/users", o.handle(o.listUsers))
	r.POST("/accounts/:account/users", o.handle(o.addUser))
	r.PATCH("/accounts/:account/users/:user", o.handle(o.changeUser))
	r.DELETE("/accounts/:account/users/:user", o.handle(o.removeUser))
	r.POST("/accounts/:account/users/:user/second-factor-reset", o.handle(o.resetSecondFactor))
	r.POST("/accounts/:account/sign-in-links", o.handle(o.createSignInLink))
	r.GET("/accounts/:account/keys", o.handle(o.listKeys))
	r.GET("/accounts/:account/usage", o.handle(o.listUsage))
	r.POST("/keys/revocations", o.handle(o.revokeKey))
	r.GET("/activity", o.handle(o.listActivity))
	r.GET("/calls", o.handle(o.listCalls))
	r.POST("/calls/:call/end", o.handle(o.endCall))
}

// NotFound handles a path without a route that this package owns.
func (e *Endpoints) NotFound(c *gin.Context) {
	e.authenticated(c, func(c *gin.Context) error {
		missing := problem.NotFound()
		switch path := c.Request.URL.Path; {
		case strings.HasSuffix(path, "/"):
			missing.Message = "The path ends in a slash. Leave it out."
		case strings.Contains(path, "//"):
			missing.Message = "The path has two slashes in a row. Check the end of the base URL that your client uses."
		}
		return missing
	})
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
	case under(path, "/api"):
		e.customers.handle(e.accessOf(path), func(c *gin.Context, _ keys.Principal) error { return h(c) })(c)
	default:
		handle(h)(c)
	}
}
