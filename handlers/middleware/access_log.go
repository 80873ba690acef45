package middleware

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// AccessLog writes one line per request: method, route pattern, status, duration in nanoseconds,
// request id and client address. The line of a 5xx has level error and the cause from c.Error. It
// never writes path, query, headers or body. A client that disconnects before the response is
// logged with status 499.
func AccessLog(logger *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		start, ctx, method := time.Now(), c.Request.Context(), methodOf(c.Request)
		// Deferred, so that a panic is logged too.
		defer func() {
			route, status := outcome(ctx, c)
			level := slog.LevelInfo
			if status >= http.StatusInternalServerError {
				level = slog.LevelError
			}
			if !logger.Enabled(ctx, level) {
				return
			}
			now := time.Now()
			// Not with logger.LogAttrs, which would look up the source line of every call.
			line := slog.NewRecord(now, level, "request", 0)
			line.AddAttrs(
				slog.String("method", method),
				slog.String("route", route),
				slog.Int("status", status),
				slog.Int64("duration_ns", now.Sub(start).Nanoseconds()),
				slog.String("request_id", RequestIDOf(c)),
				slog.String("client", c.ClientIP()),
			)
			if cause := c.Errors.Last(); cause != nil && level == slog.LevelError {
				line.AddAttrs(slog.String("cause", cause.Error()))
			}
			// A request does not fail because its log line cannot be written.
			_ = logger.Handler().Handle(ctx, line)
		}()
		c.Next()
	}
}
