package middleware

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
)

// CrossOrigin refuses a request that changes something and that a browser sends
// on behalf of another origin, going by Sec-Fetch-Site and Origin; render tells
// the caller. Requests with neither header do not come from browsers and pass:
// they carry no one's cookies but their own.
func CrossOrigin(render Render) gin.HandlerFunc {
	protection := http.NewCrossOriginProtection()
	return func(c *gin.Context) {
		if err := protection.Check(c.Request); err != nil {
			render(c, problem.CrossOrigin(err))
			c.Abort()
		}
	}
}
