package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkCreateWidgetToken measures a whole request without a network.
func BenchmarkCreateWidgetToken(b *testing.B) {
	target := newTarget(b)
	body := `{"agentId":"` + target.agentID.String() + `"}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/api/widget/token", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+target.secret)
		r.Header.Set("Content-Type", "application/json")
		if answer, _ := target.send(r); answer.Code != http.StatusOK {
			b.Fatal(answer.Code, answer.Body)
		}
	}
}
