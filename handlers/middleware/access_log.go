package middleware

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
)

// AccessLog writes one line per request: method, route pattern, status, duration in nanoseconds,
// request id, client address and the ids of the caller, but never path, query, headers or body. For
// a 5xx, the line has level error and the cause from c.Error. If the client disconnects before the
// response, the status is 499. Requests that are refused because there are too many share one line
// a second.
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

// refusalInterval is how long refused requests are counted before the count is logged.
const refusalInterval = time.Second

// refusalLog writes one warning a second about requests that were refused because there were too
// many. A line for each would cost more than the refusal.
type refusalLog struct {
	logger *slog.Logger

	mu    sync.Mutex
	count int
	first []any // attributes of the first request
}

// add counts a request, and calls describe for the first request of a second.
func (l *refusalLog) add(describe func() []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count++; l.count == 1 {
		l.first = describe()
		time.AfterFunc(refusalInterval, l.write)
	}
}

func (l *refusalLog) write() {
	l.mu.Lock()
	count, first := l.count, l.first
	l.count, l.first = 0, nil
	l.mu.Unlock()
	l.logger.LogAttrs(context.Background(), slog.LevelWarn, "requests refused", slog.Int("count", count), slog.Group("first", first...))
}

// The context keys of the values that handlers add to the log line and the metrics.
const (
	callerKey = "middleware.caller"
	codeKey   = "middleware.code"
)

// Caller has the ids of an authenticated caller, for the access log. Zero ids are left out.
type Caller struct {
	Account, Key, User uuid.UUID
}

// SetCaller adds the caller's ids to the log line of the request.
func SetCaller(c *gin.Context, caller Caller) { c.Set(callerKey, caller) }

// SetCode adds the code of an error response to the metrics of the request.
func SetCode(c *gin.Context, code string) { c.Set(codeKey, code) }

// appendCaller appends the ids of the caller, if there is one.
func appendCaller(attrs []slog.Attr, c *gin.Context) []slog.Attr {
	value, _ := c.Get(callerKey)
	caller, _ := value.(Caller)
	attrs = appendID(attrs, "account_id", caller.Account)
	attrs = appendID(attrs, "key_id", caller.Key)
	return appendID(attrs, "user_id", caller.User)
}

func appendID(attrs []slog.Attr, name string, id uuid.UUID) []slog.Attr {
	if id == uuid.Nil {
		return attrs
	}
	return append(attrs, slog.String(name, id.String()))
}

// unmatched is the logged route of a request that matches no route. Its path is not logged.
const unmatched = "unmatched"

// statusClientGone is the status, in the log and the metrics only, of a request whose client
// disconnected before the response.
const statusClientGone = 499

// outcome returns the route pattern and the status for the log and the metrics. ctx is the
// request's context from before the handlers, which is canceled only if the client disconnects.
// After a disconnection, a 5xx is not an error of the service.
func outcome(ctx context.Context, c *gin.Context) (route string, status int) {
	route, status = c.FullPath(), c.Writer.Status()
	if route == "" {
		route = unmatched
	}
	if status >= http.StatusInternalServerError && ctx.Err() != nil {
		status = statusClientGone
	}
	return route, status
}
