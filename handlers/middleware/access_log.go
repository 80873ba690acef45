package middleware

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// AccessLog writes one line for each request: method, route pattern, status,
// duration in nanoseconds, request id and the caller's address, and for a 5xx the
// cause that the handler left with c.Error. It never writes path, query, headers
// or body.
//
// A 5xx is an error; a caller who left before the answer is status 499 and not.
func AccessLog(logger *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		start, ctx, method := time.Now(), c.Request.Context(), methodOf(c.Request)
		// Deferred, so that a request that ends in a panic has its line as well.
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
			// Not by the logger, which would look up where in the source the line
			// is written: always here.
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
			// A log that cannot be written is no reason to refuse the request.
			_ = logger.Handler().Handle(ctx, line)
		}()
		c.Next()
	}
}
