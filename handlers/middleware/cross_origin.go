package middleware

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
)

// CrossOrigin refuses unsafe requests that a browser sends from another origin, as Sec-Fetch-Site
// and Origin say, and renders the error with render. Requests with neither header do not come from
// a browser and pass.
func CrossOrigin(render Render) gin.HandlerFunc {
	protection := http.NewCrossOriginProtection()
	return func(c *gin.Context) {
		if err := protection.Check(c.Request); err != nil {
			render(c, problem.CrossOrigin(err))
			c.Abort()
		}
	}
}
