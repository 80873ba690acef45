package middleware

import (
	"context"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

type headKey struct{}

// Head answers HEAD wherever next answers GET: the server leaves out the body,
// for it goes by the request as it came (RFC 9110, section 9.3.2).
func Head(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			r = r.WithContext(context.WithValue(r.Context(), headKey{}, true))
			r.Method = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// AllowHead names HEAD in the Allow header where GET is, since [Head] answers
// it. It belongs in the chain of a 405.
func AllowHead() gin.HandlerFunc {
	return func(c *gin.Context) {
		allow := c.Writer.Header().Get("Allow")
		for method := range strings.SplitSeq(allow, ", ") {
			if method == http.MethodGet {
				c.Header("Allow", allow+", "+http.MethodHead)
				return
			}
		}
	}
}

// methodOf returns the method as it came, or "other" for one that HTTP does not
// define: a caller must not be able to fill the log and the metrics with names.
func methodOf(r *http.Request) string {
	if head, _ := r.Context().Value(headKey{}).(bool); head {
		return http.MethodHead
	}
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return r.Method
	}
	return "other"
}
