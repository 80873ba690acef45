package middleware

import (
	"crypto/rand"

	"github.com/gin-gonic/gin"
)

const requestIDHeader = "X-Request-Id"

// RequestID gives every request a random id and sends it as X-Request-Id. It ignores an id from
// the client, which could make two requests look like one in the log.
func RequestID() gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Writer.Header()[requestIDHeader] = []string{rand.Text()}
	}
}

// RequestIDOf returns the request's id, or "" if [RequestID] has not run.
func RequestIDOf(c *gin.Context) string { return c.Writer.Header().Get(requestIDHeader) }
