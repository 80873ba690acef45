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
	"portal/models/livekit"
	"portal/models/widget"
)

// Deps are the dependencies of the handlers.
type Deps struct {
	// Deps are those of the portal. New sets the documents of the API, and the API uses the store
	// and the clock too.
	portal.Deps

	Tokens        *widget.Tokens
	LiveKit       *livekit.Server // nil: no LiveKit tokens
	OperatorToken string          // opens the operator API; empty: off
	Leaks         api.LeakDoors   // for reports of leaked keys
	RateLimit     api.RateLimit   // of each API key, on this instance; zero: none

	TrustedProxies []string // networks (CIDR) whose X-Forwarded-For is trusted

	// Stopping is closed when the server begins to stop, which is then no longer ready. A nil
	// channel never closes.
	Stopping <-chan struct{}

	Logger   *slog.Logger
	Registry *prometheus.Registry // for the request metrics
	Tracer   trace.Tracer         // for spans of requests; nil: none
}

// New returns the handler of every request. If a trusted proxy is not a network, the registry
// already has the request metrics, or the portal cannot be built, New returns an error.
func New(d Deps) (http.Handler, error) {
	engine, err := newRouter(d)
	if err != nil {
		return nil, err
	}
	return middleware.AsGet(engine, api.AnyMethod), nil
}

// newRouter returns the router with all middleware and routes.
func newRouter(d Deps) (*gin.Engine, error) {
	engine, err := newEngine(d.TrustedProxies)
	if err != nil {
		return nil, err
	}
	d.OpenAPI, d.Changelog, d.OperatorAPI = api.OpenAPI(), api.Changelog(), d.OperatorToken != ""
	d.LeaksReported = d.Leaks.Open()
	pages, err := portal.New(d.Deps)
	if err != nil {
		return nil, err
	}
	jsonAPI, err := api.New(api.Deps{
		OperatorToken: d.OperatorToken,
		SignInLink:    func(token string) string { return d.BaseURL.JoinPath(portal.SignInLinkPath, token).String() },

		Store: d.Store, Tokens: d.Tokens, LiveKit: d.LiveKit, RateLimit: d.RateLimit, Now: d.Now, Stopping: d.Stopping, Registry: d.Registry,
		Leaks: d.Leaks, Logger: d.Logger,
		TrustedProxies: d.TrustedProxies,
	})
	if err != nil {
		return nil, err
	}
	metrics, err := middleware.Metrics(d.Registry)
	if err != nil {
		return nil, err
	}

	render := func(c *gin.Context, err error) {
		byPath(c, func() { api.Render(c, err) }, func() { pages.Render(c, err) })
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

	engine.NoRoute(func(c *gin.Context) {
		byPath(c, func() { jsonAPI.NotFound(c) }, func() { pages.NotFound(c) })
	})
	engine.NoMethod(middleware.AllowHead(), jsonAPI.Preflight, func(c *gin.Context) {
		byPath(c, func() { jsonAPI.MethodNotAllowed(c) }, func() { pages.MethodNotAllowed(c) })
	})

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
func byPath(c *gin.Context, inAPI, inPortal func()) {
	if api.Owns(c.Request.URL.Path) {
		inAPI()
		return
	}
	inPortal()
}
