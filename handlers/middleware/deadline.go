package middleware

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"
)

// Deadline gives the handlers after it d to be done with the database: the
// models turn a missed deadline into [portal/models.ErrUnavailable].
func Deadline(d time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx, cancel := context.WithTimeout(c.Request.Context(), d)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
}
