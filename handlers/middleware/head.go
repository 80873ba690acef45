package middleware

import (
	"context"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

type headKey struct{}

// Head passes HEAD requests to next as GET. The server omits the body, because it goes by the
// original request (RFC 9110, section 9.3.2).
func Head(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			r = r.WithContext(context.WithValue(r.Context(), headKey{}, true))
			r.Method = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// AllowHead adds HEAD to an Allow header that has GET. It goes before the handler of a 405.
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

// methodOf returns the original method, or "other" for one that HTTP does not define, so that
// clients cannot create metrics without bound.
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
