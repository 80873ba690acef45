// Package handlers builds the one http.Handler of the portal and the JSON API. It holds the
// middleware common to both and its order. Packages portal and api register their own routes.
package handlers

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"portal/handlers/api"
	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/handlers/portal"
)

// Deps are the dependencies of the handlers.
type Deps = deps.Deps

// New returns the handler of every request. If the portal cannot be built, New returns an error.
func New(d Deps) (http.Handler, error) {
	engine, err := newRouter(d)
	if err != nil {
		return nil, err
	}
	return middleware.EndUnread(middleware.AsGet(engine, api.AnyMethod)), nil
}

// newRouter returns the router with all middleware and routes.
func newRouter(d Deps) (*gin.Engine, error) {
	if d.Now == nil {
		d.Now = time.Now
	}
	engine := newEngine()
	pages, err := portal.New(d, api.OpenAPI(), api.Changelog())
	if err != nil {
		return nil, err
	}
	jsonAPI := api.New(d, pages.SignInLink)
	metrics, err := middleware.Metrics(d.Registry)
	if err != nil {
		return nil, err
	}

	render := func(c *gin.Context, err error) {
		byPath(func(c *gin.Context) { api.Render(c, err) }, func(c *gin.Context) { pages.Render(c, err) })(c)
	}
	engine.Use(middleware.RequestID(), middleware.FindClient(d.TrustedProxies))
	if d.Tracer != nil {
		engine.Use(middleware.Tracing(d.Tracer, api.HealthPath, api.ReadinessPath))
	}
	// The middleware before Recovery sees the response to a panic.
	engine.Use(
		metrics,
		middleware.AccessLog(d.Logger),
		middleware.SecurityHeaders(d.BaseURL, func(path string) bool { return !api.Owns(path) }),
		middleware.Recovery(d.Logger, render),
		middleware.WarnOfForwarders(d.TrustedProxies, d.Logger),
	)

	jsonAPI.Register(engine)
	pages.Register(engine.Group("", middleware.CrossOrigin(d.BaseURL, pages.Render)))

	engine.NoRoute(byPath(jsonAPI.NotFound, pages.NotFound))
	engine.NoMethod(middleware.AllowHead(), jsonAPI.Preflight, byPath(jsonAPI.MethodNotAllowed, pages.MethodNotAllowed))

	return engine, nil
}

// newEngine returns a gin engine that neither redirects nor prints debug output.
func newEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.RedirectTrailingSlash = false
	engine.HandleMethodNotAllowed = true
	engine.ForwardedByClientIP = false // middleware.ClientOf has the address
	return engine
}

// byPath calls inAPI for a path that package api owns, and inPortal for any other.
func byPath(inAPI, inPortal gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if api.Owns(c.Request.URL.Path) {
			inAPI(c)
			return
		}
		inPortal(c)
	}
}
