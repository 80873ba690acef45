package api_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"portal/handlers/api"
)

// The API needs no store here: requests without a key do not reach it.
func TestRoutesUnderAPIRequireAKeyAndAllRoutesAreDescribed(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	jsonAPI, err := api.New(api.Deps{Registry: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	jsonAPI.Register(engine)
	public := []string{"/healthz", "/readyz", "/openapi.json", "/.well-known/jwks.json"}
	for _, route := range engine.Routes() {
		item := description(t).Paths.Find(route.Path)
		if item == nil || item.GetOperation(route.Method) == nil {
			t.Errorf("%s %s is not described", route.Method, route.Path)
			continue
		}
		isPublic := slices.Contains(public, route.Path)
		if api.Owns(route.Path) == isPublic {
			t.Errorf("%s is neither under /api nor public", route.Path)
		}
		if security := item.GetOperation(route.Method).Security; isPublic != (security != nil && len(*security) == 0) {
			t.Errorf("%s %s: the document is wrong about who may call", route.Method, route.Path)
		}
		if isPublic {
			continue
		}
		answer := httptest.NewRecorder()
		engine.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), route.Method, route.Path, http.NoBody))
		if answer.Code != http.StatusUnauthorized {
			t.Errorf("%s %s without a key: status %d, want 401", route.Method, route.Path, answer.Code)
		}
	}
	for path, item := range description(t).Paths.Map() {
		for method := range item.Operations() {
			if !slices.ContainsFunc(engine.Routes(), func(r gin.RouteInfo) bool { return r.Path == path && r.Method == method }) {
				t.Errorf("%s %s is described and not there", method, path)
			}
		}
	}
}
