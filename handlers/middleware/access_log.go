package middleware

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// AccessLog writes one line per request: method, route pattern, status, duration in nanoseconds,
// request id, client address and the ids of the caller. The line of a 5xx has level error and the
// cause from c.Error. It never writes path, query, headers or body. A client that disconnects
// before the response is logged with status 499. Requests that are refused because there are too
// many share one line a second.
func AccessLog(logger *slog.Logger) gin.HandlerFunc {
	refusals := &refusalLog{logger: logger}
	return func(c *gin.Context) {
		start, ctx, method := time.Now(), c.Request.Context(), methodOf(c.Request)
		// Deferred, so that a panic is logged too.
		defer func() {
			route, status := outcome(ctx, c)
			level := slog.LevelInfo
			if status >= http.StatusInternalServerError {
				level = slog.LevelError
			}
			cause := c.Errors.Last()
			if level == slog.LevelError && refusedBusy(c) {
				refusals.add(func() []any {
					return []any{
						slog.String("route", route), slog.String("request_id", RequestIDOf(c)),
						slog.String("client", c.ClientIP()), slog.String("cause", cause.Error()),
					}
				})
				return
			}
			if !logger.Enabled(ctx, level) {
				return
			}
			now := time.Now()
			// logger.LogAttrs would also look up the source line of every call.
			line := slog.NewRecord(now, level, "request", 0)
			attrs := append(make([]slog.Attr, 0, 9),
				slog.String("method", method),
				slog.String("route", route),
				slog.Int("status", status),
				slog.Int64("duration_ns", now.Sub(start).Nanoseconds()),
				slog.String("request_id", RequestIDOf(c)),
				slog.String("client", c.ClientIP()),
			)
			attrs = appendCaller(attrs, c)
			if cause != nil && level == slog.LevelError {
				attrs = append(attrs, slog.String("cause", cause.Error()))
			}
			line.AddAttrs(attrs...)
			// A request must not fail because its log line cannot be written.
			_ = logger.Handler().Handle(ctx, line)
		}()
		c.Next()
	}
}
