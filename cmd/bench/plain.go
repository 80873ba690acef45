package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"database/sql"
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
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
)

// plainCommand is the hidden command that serves the plain handler.
const plainCommand = "serve-plain"

// plainConnections is the number of database connections that the portal has.
const plainConnections = 8

// plainStatement is prepared by the driver once for each connection.
const plainStatement = "SELECT id FROM api_keys WHERE key_hash = $1 AND revoked_at IS NULL"

type tokenBody struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"` // seconds
}

type tokenInput struct {
	AgentID string `json:"agentId" binding:"required,uuid"`
}

// plainHandler is the endpoint without any tuning: Gin, encoding/json, golang-jwt and Ed25519. With
// a database, it runs one prepared statement per request. Without one, it accepts every key with
// the right prefix.
func plainHandler(signing ed25519.PrivateKey, db *sql.DB) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.POST("/api/widget/token", func(c *gin.Context) {
		key, found := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
		if !found || !strings.HasPrefix(key, "nas_") {
			c.AbortWithStatus(http.StatusUnauthorized)
			return
		}
		if db != nil {
			hash := sha256.Sum256([]byte(key))
			var id string
			if err := db.QueryRowContext(c.Request.Context(), plainStatement, hash[:]).Scan(&id); err != nil {
				c.AbortWithStatus(http.StatusUnauthorized)
				return
			}
		}
		var input tokenInput
		if err := c.ShouldBindJSON(&input); err != nil {
			c.AbortWithStatus(http.StatusBadRequest)
			return
		}
		now := time.Now()
		token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
			"iss": "http://" + host, "aud": "widget", "sub": uuid.UUID{1}.String(),
			"client_id": uuid.UUID{2}.String(),
			"agent_id":  input.AgentID, "scope": "widget:connect",
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

// servePlain serves the plain handler until SIGTERM. An empty databaseURL means no database.
func servePlain(address, databaseURL string) error {
	var db *sql.DB
	if databaseURL != "" {
		var err error
		if db, err = sql.Open("pgx", databaseURL); err != nil {
			return err
		}
		db.SetMaxOpenConns(plainConnections)
		db.SetMaxIdleConns(plainConnections)
	}
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	s := &http.Server{
		Addr: address, Handler: plainHandler(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), db),
		ReadHeaderTimeout: stopTimeout,
	}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
