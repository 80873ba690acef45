package middleware

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"
)

// Deadline sets a context deadline of d for the handlers after it. The models turn a missed
// deadline into [portal/models.ErrUnavailable].
func Deadline(d time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx, cancel := context.WithTimeout(c.Request.Context(), d)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
}
