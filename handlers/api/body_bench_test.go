package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
)

// BenchmarkReadAgentID reads the body of a request for a widget token.
func BenchmarkReadAgentID(b *testing.B) {
	const body = `{"agentId":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c004"}`
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	b.ReportAllocs()
	for b.Loop() {
		c.Request = httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/api/widget/token", strings.NewReader(body))
		c.Request.Header.Set("Content-Type", "application/json")
		if _, err := readAgentID(c); err != nil {
			b.Fatal(err)
		}
	}
}
