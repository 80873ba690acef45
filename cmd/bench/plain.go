package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// plainCommand is the hidden command that serves the plain handler.
const plainCommand = "serve-plain"

type tokenBody struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"` // seconds
}

type tokenInput struct {
	AgentID string `json:"agentId" binding:"required,uuid"`
}

// plainHandler is the endpoint as it is written without a thought of speed:
// Gin, encoding/json, golang-jwt and Ed25519. It has no store: whatever looks
// like a key is good.
func plainHandler(signing ed25519.PrivateKey) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.POST("/api/widget/token", func(c *gin.Context) {
		key, found := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
		if !found || !strings.HasPrefix(key, "nas_") {
			c.AbortWithStatus(http.StatusUnauthorized)
			return
		}
		var input tokenInput
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
		c.JSON(http.StatusOK, tokenBody{AccessToken: signed, TokenType: "Bearer", ExpiresIn: 600})
	})
	return engine
}

// servePlain serves the plain handler until it is told to end.
func servePlain(address string) error {
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	s := &http.Server{
		Addr: address, Handler: plainHandler(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))),
		ReadHeaderTimeout: stopTimeout,
	}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
