package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
)

// BenchmarkReadTokenRequest reads the body of a request for a widget token.
func BenchmarkReadTokenRequest(b *testing.B) {
	a := newIssuer(b)
	for name, body := range map[string]string{
		"by hand":       `{"agentId":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c004"}`,
		"encoding/json": `{"agentId":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c004" }`,
	} {
		b.Run(name, func(b *testing.B) {
			c, _ := gin.CreateTestContext(httptest.NewRecorder())
			c.Request = httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/api/widget/token", http.NoBody)
			c.Request.Header.Set("Content-Type", "application/json")
			c.Request.ContentLength = int64(len(body))
			b.ReportAllocs()
			for b.Loop() {
				c.Request.Body = io.NopCloser(strings.NewReader(body))
				if _, err := a.readTokenRequest(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
