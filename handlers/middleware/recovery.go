package middleware

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
)

// Recovery turns a panic into a 500, which it renders with render. The log gets the stack with the
// request id, but never the request, whose headers may contain keys and cookies. If part of the
// response has been sent, Recovery aborts the connection, so that the client sees an incomplete
// response.
func Recovery(logger *slog.Logger, render Render) gin.HandlerFunc {
	return func(c *gin.Context) {
		defer func() {
			recovered := recover()
			if recovered == nil {
				return
			}
			err, isError := recovered.(error)
			if isError && errors.Is(err, http.ErrAbortHandler) {
				panic(http.ErrAbortHandler)
			}
			if !isError {
				err = fmt.Errorf("%v", recovered)
			}
			err = fmt.Errorf("panic: %w", err)
			logger.LogAttrs(c.Request.Context(), slog.LevelError, "panic",
				slog.String("error", err.Error()),
				slog.String("request_id", RequestIDOf(c)),
				slog.String("stack", string(debug.Stack())))
			if c.Writer.Written() {
				panic(http.ErrAbortHandler)
			}
			render(c, problem.Internal(err))
			c.Abort()
		}()
		c.Next()
	}
}
