package middleware

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
)

// unmatched stands for the route of a request that no route answers to: its
// path is the caller's own words.
const unmatched = "unmatched"

// statusClientGone is what the log and the metrics call a request whose caller
// left before the answer. No caller ever sees it.
const statusClientGone = 499

// outcome is what became of a request. It is taken with the context as it was
// before the handlers ran, which ends early only when the caller leaves: work
// that fails because of that is no fault of ours, and no 5xx.
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
