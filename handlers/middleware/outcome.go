package middleware

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
)

// unmatched is the logged route of a request that matches no route. Its path is not logged.
const unmatched = "unmatched"

// statusClientGone is the status of a request whose client disconnected before the response. It
// appears only in the log and the metrics.
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
