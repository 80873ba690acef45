package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"portal/handlers/middleware"
)

// plainCommand is the hidden command that serves the plain handler.
const plainCommand, withMiddleware = "serve-plain", "with-middleware"

// plainHandler is the endpoint without any tuning and without a store: Gin, encoding/json,
// golang-jwt and Ed25519. Every key with the right prefix is accepted.
func plainHandler(use ...gin.HandlerFunc) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.Use(use...)
	signing := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	engine.POST("/api/widget/token", func(c *gin.Context) {
		if !strings.HasPrefix(c.GetHeader("Authorization"), "Bearer nas_") {
			c.AbortWithStatus(http.StatusUnauthorized)
			return
		}
		var input struct {
			AgentID string `json:"agentId" binding:"required,uuid"`
		}
		if err := c.ShouldBindJSON(&input); err != nil {
			c.AbortWithStatus(http.StatusBadRequest)
			return
		}
		now := time.Now()
		token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
			"iss": "http://" + host, "aud": "widget", "sub": uuid.UUID{1}.String(), "client_id": uuid.UUID{2}.String(),
			"agent_id": input.AgentID, "scope": "widget:connect",
			"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(), "jti": uuid.NewString(),
		})
		token.Header["typ"] = "at+jwt"
		token.Header["kid"] = "bench"
		signed, err := token.SignedString(signing)
		if err != nil {
			c.AbortWithStatus(http.StatusInternalServerError)
			return
		}
		c.JSON(http.StatusOK, struct {
			AccessToken string `json:"access_token"`
			TokenType   string `json:"token_type"`
			ExpiresIn   int    `json:"expires_in"` // seconds
		}{AccessToken: signed, TokenType: "Bearer", ExpiresIn: 600})
	})
	return engine
}

// portalMiddleware returns the middleware with which the portal serves its API.
func portalMiddleware() []gin.HandlerFunc {
	// A new registry has no duplicates.
	metrics, _ := middleware.Metrics(prometheus.NewRegistry())
	lines := &lineWriter{buffer: bufio.NewWriterSize(os.Stderr, 64<<10)}
	logger := slog.New(struct {
		slog.Handler
		io.Writer
	}{slog.NewJSONHandler(lines, nil), lines})
	noPage := func(string) bool { return false }
	render := func(c *gin.Context, _ error) { c.AbortWithStatus(http.StatusInternalServerError) }
	return []gin.HandlerFunc{
		middleware.RequestID(), metrics, middleware.AccessLog(logger),
		middleware.SecurityHeaders(&url.URL{Scheme: "http", Host: host}, noPage), middleware.Recovery(logger, render),
	}
}

// lineWriter buffers the lines of an access log.
type lineWriter struct {
	mu     sync.Mutex
	buffer *bufio.Writer
}

func (w *lineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buffer.Write(line)
}

func (b *bench) startPlain(ctx context.Context, key apiKey, options string) (*server, error) {
	// The portal sets its garbage collector to the same values (cmd/portal/collector.go).
	return b.start(ctx, key, []string{"/proc/self/exe", plainCommand},
		"PLAIN_ADDR=ADDRESS", "PLAIN_OPTIONS="+options, "GOGC=400", "GOMEMLIMIT=256MiB")
}

// servePlain serves the plain handler until ctx ends.
func servePlain(ctx context.Context) error {
	var use []gin.HandlerFunc
	if os.Getenv("PLAIN_OPTIONS") == withMiddleware {
		use = portalMiddleware()
	}
	s := &http.Server{Addr: os.Getenv("PLAIN_ADDR"), Handler: plainHandler(use...), ReadHeaderTimeout: stopTimeout}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
