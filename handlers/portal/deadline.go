package portal

import (
	"context"

	"github.com/gin-gonic/gin"

	"portal/models"
)

// withDeadline calls f while the request's context has the database's time limit.
func withDeadline(c *gin.Context, f func()) {
	whole := c.Request.Context()
	ctx, cancel := context.WithTimeout(whole, models.Timeout)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	f()
	c.Request = c.Request.WithContext(whole)
}

// deadline is [withDeadline] for the handlers after it.
func deadline(c *gin.Context) { withDeadline(c, c.Next) }
