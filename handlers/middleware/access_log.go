package middleware

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// AccessLog writes one line for each request: method, route pattern, status,
// duration, request id and the caller's address, and for a 5xx the cause that
// the handler left with c.Error. It never writes path, query, headers or body.
//
// A 5xx is an error; a caller who left before the answer is status 499 and not.
func AccessLog(logger *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		start, ctx, method := time.Now(), c.Request.Context(), methodOf(c.Request)
		// Deferred, so that a request that ends in a panic has its line as well.
		defer func() {
			route, status := outcome(ctx, c)
			attrs := []slog.Attr{
				slog.String("method", method),
				slog.String("route", route),
				slog.Int("status", status),
				slog.Duration("duration", time.Since(start)),
				slog.String("request_id", RequestIDOf(c)),
				slog.String("client", c.ClientIP()),
			}
			level := slog.LevelInfo
			if status >= http.StatusInternalServerError {
				level = slog.LevelError
				if cause := c.Errors.Last(); cause != nil {
					attrs = append(attrs, slog.String("cause", cause.Error()))
				}
			}
			logger.LogAttrs(ctx, level, "request", attrs...)
		}()
		c.Next()
	}
}
