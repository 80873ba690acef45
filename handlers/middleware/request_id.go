package middleware

import (
	"crypto/rand"

	"github.com/gin-gonic/gin"
)

const requestIDHeader = "X-Request-Id"

// RequestID gives every request a random id and sends it as X-Request-Id. An id
// that the caller sent is not believed: it could make two requests look like
// one in the log.
func RequestID() gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Writer.Header()[requestIDHeader] = []string{rand.Text()}
	}
}

// RequestIDOf returns the id that [RequestID] gave the request, empty where
// that has not run.
func RequestIDOf(c *gin.Context) string { return c.Writer.Header().Get(requestIDHeader) }
