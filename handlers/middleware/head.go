package middleware

import (
	"context"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// methodKey is the context key of the original method of a request that was passed on as GET.
type methodKey struct{}

// AsGet passes HEAD requests to next as GET, and requests with any method if anyMethod reports true
// for their path. The server omits the body of a response to HEAD, because it goes by the original
// request (RFC 9110, section 9.3.2).
func AsGet(next http.Handler, anyMethod func(path string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead || r.Method != http.MethodGet && anyMethod(r.URL.Path) {
			r = r.WithContext(context.WithValue(r.Context(), methodKey{}, r.Method))
			r.Method = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// AllowHead adds HEAD to an Allow header that has GET. It must run before the handler of a 405.
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

const otherMethod = "other"

// methodOf returns the original method, or otherMethod for one that HTTP does not define, so that
// clients cannot create metrics without bound.
func methodOf(r *http.Request) string {
	method := r.Method
	if original, ok := r.Context().Value(methodKey{}).(string); ok {
		method = original
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return method
	}
	return otherMethod
}
