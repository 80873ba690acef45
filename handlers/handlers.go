// Package handlers builds the one http.Handler of the portal and the JSON API. It holds the
// middleware common to both and its order. Packages portal and api register their own routes.
package handlers

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"portal/handlers/api"
	"portal/handlers/middleware"
	"portal/handlers/portal"
)

// Deps are the dependencies of the handlers.
type Deps struct {
	// Deps are those of the portal. New sets the documents of the API.
	portal.Deps

	// API are those of the API. New sets the ones that are here or in the portal's too.
	API api.Deps

	Logger   *slog.Logger
	Registry *prometheus.Registry // for the request metrics
	Tracer   trace.Tracer         // for spans of requests; nil: none
}

// New returns the handler of every request. If a trusted proxy is not a network or the portal
// cannot be built, New returns an error. The registry must not have the metrics yet.
func New(d Deps) (http.Handler, error) {
	engine, err := newRouter(d)
	if err != nil {
		return nil, err
	}
	return middleware.AsGet(engine, api.AnyMethod), nil
}

// newRouter returns the router with all middleware and routes.
func newRouter(d Deps) (*gin.Engine, error) {
	engine, err := newEngine(d.API.TrustedProxies)
	if err != nil {
		return nil, err
	}
	d.OpenAPI, d.Changelog, d.OperatorAPI = api.OpenAPI(), api.Changelog(), d.API.OperatorToken != ""
	d.LeaksReported = d.API.Leaks.Open()
	pages, err := portal.New(d.Deps)
	if err != nil {
		return nil, err
	}
	d.API.Store, d.API.Now, d.API.Logger, d.API.Registry = d.Store, d.Now, d.Logger, d.Registry
	d.API.SignInLink = func(token string) string { return d.BaseURL.JoinPath(portal.SignInLinkPath, token).String() }
	jsonAPI, err := api.New(d.API)
	if err != nil {
		return nil, err
	}
	metrics, err := middleware.Metrics(d.Registry)
	if err != nil {
		return nil, err
	}

	render := func(c *gin.Context, err error) {
		byPath(func(c *gin.Context) { api.Render(c, err) }, func(c *gin.Context) { pages.Render(c, err) })(c)
	}
	engine.Use(middleware.RequestID())
	if d.Tracer != nil {
		engine.Use(middleware.Tracing(d.Tracer))
	}
	// The middleware before Recovery sees the response to a panic.
	engine.Use(
		metrics,
		middleware.AccessLog(d.Logger),
		middleware.SecurityHeaders(d.BaseURL, func(path string) bool { return !api.Owns(path) }),
		middleware.Recovery(d.Logger, render),
	)

	jsonAPI.Register(engine)
	pages.Register(engine.Group("", middleware.CrossOrigin(pages.Render)))

	engine.NoRoute(byPath(jsonAPI.NotFound, pages.NotFound))
	engine.NoMethod(middleware.AllowHead(), jsonAPI.Preflight, byPath(jsonAPI.MethodNotAllowed, pages.MethodNotAllowed))

	return engine, nil
}

// newEngine returns a gin engine that trusts only these proxies, and neither redirects nor prints
// debug output.
func newEngine(trustedProxies []string) (*gin.Engine, error) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.RedirectTrailingSlash = false
	engine.HandleMethodNotAllowed = true
	engine.RemoteIPHeaders = []string{"X-Forwarded-For"}
	if err := engine.SetTrustedProxies(trustedProxies); err != nil {
		return nil, fmt.Errorf("trusted proxies: %w", err)
	}
	return engine, nil
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
