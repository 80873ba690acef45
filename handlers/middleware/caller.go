package middleware

import (
	"log/slog"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
)

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
