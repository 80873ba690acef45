// Package middleware is what every request passes through, whichever voice
// answers it: the request id, the access log, the counts, recovery from panics,
// security headers, the deadline for the database and the refusal of forms that
// other sites send.
//
// It never logs what a caller sent beyond the method: no path, query, header or
// body, where a key or a password may stand.
package middleware

import "github.com/gin-gonic/gin"

// Render tells the caller of an error and ends the request. Each voice has its
// own: an error body, a page or a fragment.
type Render func(c *gin.Context, err error)
