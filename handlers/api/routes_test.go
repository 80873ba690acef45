package api_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"portal/handlers/api"
	"portal/models/modelstest"
)

// The API needs no store here: requests without a key do not reach it.
func TestRoutesUnderAPIRequireAKeyAndAllRoutesAreDescribed(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	jsonAPI, err := api.New(api.Deps{Registry: prometheus.NewRegistry(), OperatorToken: operatorToken})
	modelstest.Must(t, err)
	jsonAPI.Register(engine)
	public := []string{
		"/healthz", "/readyz", "/openapi.json", "/leaks",
		"/.well-known/jwks.json", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration",
	}
	routes := engine.Routes()
	for i, route := range routes {
		if _, found := gatewayPath(route.Path); found {
			route.Path = strings.TrimSuffix(route.Path, "/*rest")
		}
		route.Path = regexp.MustCompile(`:(\w+)`).ReplaceAllString(route.Path, "{$1}")
		routes[i] = route
		item := description(t).Paths.Value(route.Path)
		if item == nil || item.GetOperation(route.Method) == nil {
			t.Errorf("%s %s is not described", route.Method, route.Path)
			continue
		}
		isPublic := slices.Contains(public, route.Path)
		if api.Owns(route.Path) == isPublic && route.Path != "/leaks" {
			t.Errorf("%s is neither under /api or /operator nor public", route.Path)
		}
		if security := item.GetOperation(route.Method).Security; isPublic != (security != nil && len(*security) == 0) {
			t.Errorf("%s %s: the document is wrong about who may call", route.Method, route.Path)
		}
		if isPublic {
			continue
		}
		schemes := openapi3.SecurityRequirements{{"operatorToken": {}}}
		if operated := item.GetOperation(route.Method).Security; (operated != nil && reflect.DeepEqual(*operated, schemes)) != strings.HasPrefix(route.Path, "/operator/") {
			t.Errorf("%s %s: the document is wrong about the operator token", route.Method, route.Path)
		}
		answer := httptest.NewRecorder()
		engine.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), route.Method, route.Path, http.NoBody))
		if answer.Code != http.StatusUnauthorized {
			t.Errorf("%s %s without a key: status %d, want 401", route.Method, route.Path, answer.Code)
		}
	}
	for path, item := range description(t).Paths.Map() {
		for method := range item.Operations() {
			if !slices.ContainsFunc(routes, func(r gin.RouteInfo) bool { return r.Path == path && r.Method == method }) {
				t.Errorf("%s %s is described but does not exist", method, path)
			}
		}
	}
}
