package middleware

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
)

// AccessLog writes one line per request: method, route pattern, status, duration in nanoseconds,
// request id, client address and the ids of the caller, but never path, query, headers or body. If
// a handler has called c.Error, it has the cause too. For a 5xx, the line has level error. If the
// client disconnects before the response, the status is 499. A request that is refused because
// there are too many is a warning.
//
// If the logger's handler is also an [io.Writer], each write to it must have the effect of a record
// of level info whose line a [slog.JSONHandler] would have written. Then the usual line does not go
// through package slog, which would take 7 % of the CPU time of a request for a token.
func AccessLog(logger *slog.Logger) gin.HandlerFunc {
	lines, _ := logger.Handler().(io.Writer)
	return func(c *gin.Context) {
		start, ctx, method := time.Now(), c.Request.Context(), methodOf(c.Request)
		// Deferred, so that a panic is logged too.
		defer func() {
			route, status := outcome(ctx, c)
			level := slog.LevelInfo
			if status >= http.StatusInternalServerError {
				level = slog.LevelError
			}
			message, cause := "request", c.Errors.Last()
			if level == slog.LevelError && refusedBusy(c) {
				message, level = "request refused", slog.LevelWarn
			}
			if !logger.Enabled(ctx, level) {
				return
			}
			now := time.Now()
			line := accessLine{
				at: now, method: method, route: route, status: status, took: now.Sub(start),
				requestID: RequestIDOf(c), client: ClientOf(c).String(), caller: callerOf(c),
			}
			if level == slog.LevelInfo && lines != nil && cause == nil && line.writeJSON(lines) {
				return
			}
			// logger.LogAttrs would also look up the source line of every call.
			record := slog.NewRecord(now, level, message, 0)
			record.AddAttrs(line.attrs()...)
			if cause != nil {
				record.AddAttrs(slog.String("cause", cause.Error()))
			}
			// A request must not fail because its log line cannot be written.
			_ = logger.Handler().Handle(ctx, record)
		}()
		c.Next()
	}
}

// accessLine is the log line of a request.
type accessLine struct {
	at                time.Time
	method, route     string
	status            int
	took              time.Duration
	requestID, client string
	caller            Caller
}

func (l *accessLine) attrs() []slog.Attr {
	attrs := append(make([]slog.Attr, 0, 9),
		slog.String("method", l.method),
		slog.String("route", l.route),
		slog.Int("status", l.status),
		slog.Int64("duration_ns", l.took.Nanoseconds()),
		slog.String("request_id", l.requestID),
		slog.String("client", l.client),
	)
	l.caller.each(func(name string, id uuid.UUID) { attrs = append(attrs, slog.String(name, id.String())) })
	return attrs
}

// lineBuffers are buffers for lines. A longer line allocates its own.
var lineBuffers = sync.Pool{New: func() any { return new([512]byte) }}

// writeJSON writes the line with level info to w, as a [slog.JSONHandler] does. If a text has
// characters that JSON may escape, it writes nothing and reports false.
func (l *accessLine) writeJSON(w io.Writer) bool {
	for _, text := range [...]string{l.method, l.route, l.requestID, l.client} {
		for i := range len(text) {
			if b := text[i]; b < ' ' || b > '~' || b == '"' || b == '\\' {
				return false
			}
		}
	}
	buffer, _ := lineBuffers.Get().(*[512]byte)
	defer lineBuffers.Put(buffer)
	b := l.at.AppendFormat(append(buffer[:0], `{"time":"`...), time.RFC3339Nano)
	b = append(append(b, `","level":"INFO","msg":"request","method":"`...), l.method...)
	b = append(append(b, `","route":"`...), l.route...)
	b = strconv.AppendInt(append(b, `","status":`...), int64(l.status), 10)
	b = strconv.AppendInt(append(b, `,"duration_ns":`...), l.took.Nanoseconds(), 10)
	b = append(append(b, `,"request_id":"`...), l.requestID...)
	b = append(append(b, `","client":"`...), l.client...)
	l.caller.each(func(name string, id uuid.UUID) {
		b = append(append(append(append(b, `","`...), name...), `":"`...), id.String()...)
	})
	_, _ = w.Write(append(b, "\"}\n"...)) // a request must not fail because of its log line
	return true
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

// callerOf returns the caller of the request, which is the zero value if there is none.
func callerOf(c *gin.Context) Caller {
	value, _ := c.Get(callerKey)
	caller, _ := value.(Caller)
	return caller
}

// each calls visit with the ids that are not zero.
func (c Caller) each(visit func(name string, id uuid.UUID)) {
	for _, one := range [...]struct {
		name string
		id   uuid.UUID
	}{{"account_id", c.Account}, {"key_id", c.Key}, {"user_id", c.User}} {
		if one.id != uuid.Nil {
			visit(one.name, one.id)
		}
	}
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
