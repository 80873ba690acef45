// Package handlers puts the two voices, the portal and the JSON API, behind one
// http.Handler. It holds what is common to both and the order in which it
// happens; what each voice answers is registered by its own package.
package handlers

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"portal/handlers/api"
	"portal/handlers/middleware"
	"portal/handlers/portal"
	"portal/models"
)

// Deps is what the handlers are built from.
type Deps struct {
	Store  *models.Store
	Tokens *models.WidgetTokens

	CookieKeys [][]byte      // of 32 bytes; the first signs, all verify
	SessionMax time.Duration // how long a browser keeps the session cookie

	BaseURL        *url.URL // the public URL, as browsers see it
	TrustedProxies []string // networks (CIDR) whose X-Forwarded-For is believed

	RateLimit api.RateLimit    // of each API key, on this instance; zero: none
	Now       func() time.Time // the clock of the rate limit; nil: time.Now

	// Stopping is closed when the server is about to stop: an answer that is held
	// until there is something to tell is then held no longer. Nil: never.
	Stopping <-chan struct{}

	Logger   *slog.Logger
	Registry *prometheus.Registry // where request counts are registered
}

// New returns the handler of every request. It errs when a trusted proxy is not
// a network, when the registry has the metrics of another handler, or when the
// portal cannot be built.
func New(d Deps) (http.Handler, error) {
	engine, err := newRouter(d)
	if err != nil {
		return nil, err
	}
	return middleware.Head(engine), nil
}

// newRouter is the one route table.
func newRouter(d Deps) (*gin.Engine, error) {
	engine, err := newEngine(d.TrustedProxies)
	if err != nil {
		return nil, err
	}
	people, err := portal.New(portal.Deps{
		Store:      d.Store,
		CookieKeys: d.CookieKeys,
		SessionMax: d.SessionMax,
		BaseURL:    d.BaseURL,
		Stopping:   d.Stopping,
	})
	if err != nil {
		return nil, err
	}
	programs := api.New(api.Deps{Store: d.Store, Tokens: d.Tokens, RateLimit: d.RateLimit, Now: d.Now})
	metrics, err := middleware.Metrics(d.Registry)
	if err != nil {
		return nil, err
	}

	// Every request, whoever answers it. The first is the outermost: a request
	// that panics is counted and logged with the answer it got.
	engine.Use(
		middleware.RequestID(),
		metrics,
		middleware.AccessLog(d.Logger),
		middleware.SecurityHeaders(d.BaseURL, func(path string) bool { return !api.Owns(path) }),
		middleware.Recovery(d.Logger, func(c *gin.Context, err error) {
			byAddress(c, func() { api.Render(c, err) }, func() { people.Render(c, err) })
		}),
	)

	// Programs, with or without an API key.
	programs.Register(engine)

	// People in a browser, signed in or not.
	people.Register(engine.Group("", middleware.CrossOrigin(people.Render)))

	// No route, or not for this method.
	engine.NoRoute(func(c *gin.Context) {
		byAddress(c, func() { programs.NotFound(c) }, func() { people.NotFound(c) })
	})
	engine.NoMethod(middleware.AllowHead(), func(c *gin.Context) {
		byAddress(c, func() { programs.MethodNotAllowed(c) }, func() { people.MethodNotAllowed(c) })
	})

	return engine, nil
}

// newEngine returns a gin engine without what gin does of its own accord: it
// redirects nothing, believes no proxy but these, and prints nothing.
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

// byAddress runs program under /api and person elsewhere: an error has the voice
// of whoever would have answered.
func byAddress(c *gin.Context, program, person func()) {
	if api.Owns(c.Request.URL.Path) {
		program()
		return
	}
	person()
}
