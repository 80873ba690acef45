package middleware

import (
	"crypto/rand"

	"github.com/gin-gonic/gin"
)

const (
	requestIDHeader = "X-Request-Id"
	requestIDKey    = "middleware.request_id"
)

// RequestID gives every request a random id and sends it as X-Request-Id. An id
// that the caller sent is not believed: it could make two requests look like
// one in the log.
func RequestID() gin.HandlerFunc {
	return func(c *gin.Context) {
		id := rand.Text()
		c.Set(requestIDKey, id)
		c.Header(requestIDHeader, id)
	}
}

// RequestIDOf returns the id that [RequestID] gave the request, empty where
// that has not run.
func RequestIDOf(c *gin.Context) string { return c.GetString(requestIDKey) }
