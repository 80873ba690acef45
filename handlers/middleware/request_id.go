package middleware

import (
	"crypto/rand"

	"github.com/gin-gonic/gin"
)

const requestIDHeader = "X-Request-Id"

// RequestID gives every request a random id and sends it as X-Request-Id. Because an id from the
// client could make two requests look like one in the log, it is ignored.
func RequestID() gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Writer.Header()[requestIDHeader] = []string{rand.Text()}
	}
}

// RequestIDOf returns the request's id, or "" if [RequestID] has not run.
func RequestIDOf(c *gin.Context) string { return c.Writer.Header().Get(requestIDHeader) }
