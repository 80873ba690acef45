// Package middleware has the Gin middleware of the portal and the JSON API: request id, client,
// access log, metrics, panic recovery, overload, security headers, HEAD and cross-origin
// protection.
//
// It logs no path, query, header or body, because each may contain a key or a password.
package middleware

import "github.com/gin-gonic/gin"

// Render writes err as the response: an error body in the API, a page or a fragment in the portal.
type Render func(c *gin.Context, err error)
