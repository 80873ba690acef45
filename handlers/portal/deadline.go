package portal

import (
	"context"

	"github.com/gin-gonic/gin"
)

// withDeadline calls f while the request's context has the database's time limit.
func (p *Portal) withDeadline(c *gin.Context, f func()) {
	whole := c.Request.Context()
	ctx, cancel := context.WithTimeout(whole, p.store.Timeout())
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	f()
	c.Request = c.Request.WithContext(whole)
}

// deadline is [withDeadline] for the handlers after it.
func (p *Portal) deadline(c *gin.Context) { p.withDeadline(c, c.Next) }
