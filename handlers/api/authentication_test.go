package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"

	"portal/handlers/api"
	"portal/handlers/handlerstest"
	"portal/models"
	"portal/models/modelstest"
)

const (
	plainChallenge   = `Bearer realm="api"`
	invalidChallenge = `Bearer realm="api", error="invalid_token"`
)

// unknownKey is well-formed, but no account has it.
const unknownKey = "nas_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz4YgeBw"

// Each message is the example of this name in the OpenAPI document.
func TestEachRefusalHasItsOwnMessage(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *service, c customer) {
		revoked, disabled, both := s.customer(), s.customer(), s.customer()
		s.revoke(revoked)
		s.revoke(both)
		s.get("/api/agents", bearer(disabled.secret)).is(http.StatusOK)
		s.disable(disabled)
		s.disable(both)
		expired := s.customer()
		s.expire(expired)
		mistyped := []byte(c.secret)
		mistyped[10] ^= 1 // flips one bit; the result may be neither a letter nor a digit

		for name, refused := range map[string]struct {
			example string
			headers []string
		}{
			"no header":                   {"missing", nil},
			"an empty header":             {"empty", []string{""}},
			"two headers":                 {"several", []string{"Bearer " + c.secret, "Bearer " + c.secret}},
			"another scheme":              {"scheme", []string{"Digest " + c.secret}},
			"Basic with the key":          {"basic", []string{"Basic " + c.secret}},
			"Basic with a user name":      {"basic", []string{"basic " + base64.StdEncoding.EncodeToString([]byte(c.secret+":"))}},
			"a key without a scheme":      {"scheme", []string{c.secret}},
			"a tab for a space":           {"scheme", []string{"Bearer\t" + c.secret}},
			"a scheme without a key":      {"nothing", []string{"Bearer"}},
			"another service's key":       {"prefix", []string{"Bearer sk_live_51H8xXyZ"}},
			"a prefix in capitals":        {"prefix", []string{"Bearer NAS_" + c.secret[4:]}},
			"a widget token":              {"prefix", []string{"Bearer " + s.token(c)}},
			"a prefix alone":              {"malformed", []string{"Bearer nas_"}},
			"a key cut short":             {"malformed", []string{"Bearer " + c.secret[:len(c.secret)-1]}},
			"a key with a suffix":         {"malformed", []string{"Bearer " + c.secret + "0"}},
			"a key mistyped":              {"malformed", []string{"Bearer " + string(mistyped)}},
			"two keys in one header":      {"malformed", []string{"Bearer " + c.secret + ", Bearer " + c.secret}},
			"a key that was never issued": {"unknown", []string{"Bearer " + unknownKey}},
			"a revoked key":               {"revoked", []string{"Bearer " + revoked.secret}},
			"an expired key":              {"expired", []string{"Bearer " + expired.secret}},
			"a disabled account":          {"disabled", []string{"Bearer " + disabled.secret}},
			"revoked and disabled":        {"revoked", []string{"Bearer " + both.secret}},
		} {
			t.Log(name)
			a := s.get("/api/agents", authorizations(refused.headers))
			a.fails(http.StatusUnauthorized, "UNAUTHORIZED").says("Unauthorized", refused.example)
			if len(refused.headers) == 0 {
				a.has("WWW-Authenticate", plainChallenge)
			} else {
				a.has("WWW-Authenticate", invalidChallenge)
			}
		}
	})
}

func TestAuthenticationComesFirst(t *testing.T) {
	tooLarge := jsonBody(strings.Repeat(" ", 20<<10))
	requests := []struct {
		method, path string
		options      []option
	}{
		{http.MethodGet, "/api", nil},
		{http.MethodGet, "/api/", nil},
		{http.MethodGet, "/api//", nil},
		{http.MethodGet, "/api/nothing/here", nil},
		{http.MethodGet, "/api/agents/", nil},
		{http.MethodGet, "/api/../login", nil},
		{http.MethodGet, "/api%2fagents", nil},
		{http.MethodGet, "/%61pi/agents", nil},
		{http.MethodGet, "/api/agents?key=nas_", nil},
		{http.MethodHead, "/api/agents", nil},
		{http.MethodHead, "/api/nothing", nil},
		{http.MethodOptions, "/api/agents", []option{
			header("Origin", "https://elsewhere.example"), header("Access-Control-Request-Method", "GET"),
		}},
		{http.MethodDelete, "/api/agents", nil},
		{http.MethodTrace, "/api/agents", nil},
		{"PURGE", "/api/agents", nil},
		{"PROPFIND", "/api/authorize", nil},
		{http.MethodPost, "/api/authorize/v1/calls?agentId=x", nil},
		{http.MethodGet, "/api/widget/token", nil},
		{http.MethodPost, "/api/widget/token", nil},
		{http.MethodPost, "/api/widget/token", []option{body("text/plain", "x")}},
		{http.MethodPost, "/api/widget/token", []option{tooLarge}},
		{http.MethodPost, "/api/widget/introspect", []option{jsonBody("[")}},
	}
	onSQLite(t, func(t *testing.T, s *service, _ customer) {
		revoked := s.customer()
		s.revoke(revoked)
		for _, r := range requests {
			for name, credentials := range map[string][]option{
				"nothing":   nil,
				"a cookie":  {header("Cookie", "session=1")},
				"a bad key": {bearer("nas_no")},
				"revoked":   {bearer(revoked.secret)},
			} {
				a := s.send(r.method, r.path, append(credentials, r.options...)...)
				if a.status != http.StatusUnauthorized {
					t.Errorf("%s %s with %s: status %d, want 401", r.method, r.path, name, a.status)
				}
				a.lacks("Allow", "X-Account-Id", "X-Key-Id")
				a.has("Cache-Control", "no-store")
				if a.header.Get("X-Request-Id") == "" || a.header.Get("WWW-Authenticate") == "" {
					t.Errorf("%s %s with %s: headers %v", r.method, r.path, name, a.header)
				}
			}
		}
	})
}

func TestKeyIsInNoResponseAndNotInTheLog(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		answers := []answer{
			s.get("/api/agents", bearer(c.secret)),
			s.get("/api/agents", header("Authorization", c.secret)),
			s.get("/api/"+c.secret+"?key="+c.secret, bearer(c.secret)),
			s.post("/api/widget/token", bearer(c.secret), jsonBody(`{"agentId": "`+c.secret+`"}`)),
			s.post("/api/widget/introspect", bearer(c.secret), tokenForm(c.secret)),
		}
		for _, a := range answers {
			if strings.Contains(string(a.body)+fmt.Sprint(a.header), c.secret[4:]) {
				t.Errorf("a response contains the key: %s", a.body)
			}
		}
		if strings.Contains(s.log.String(), c.secret[4:]) {
			t.Error("the log contains the key")
		}
	})
}

// authorizations sends one Authorization header for each value.
func authorizations(values []string) option {
	return func(r *http.Request) { r.Header["Authorization"] = values }
}

// exampleMessage returns the message of an example of a response in the OpenAPI document.
func exampleMessage(t testing.TB, response, example string) string {
	t.Helper()
	content := description(t).Components.Responses[response].Value.Content["application/json"]
	shown, ok := content.Examples[example]
	if !ok {
		t.Fatalf("%s has no example %s", response, example)
	}
	return shown.Value.Value.(map[string]any)["error"].(string)
}

// exampleReason returns the reason of the example in the OpenAPI document that has this message.
func exampleReason(t testing.TB, message string) string {
	t.Helper()
	for _, response := range description(t).Components.Responses {
		for _, content := range response.Value.Content {
			for _, shown := range content.Examples {
				if value, ok := shown.Value.Value.(map[string]any); ok && value["error"] == message {
					reason, _ := shown.Value.Extensions["x-error-reason"].(string)
					return reason
				}
			}
		}
	}
	t.Errorf("no example has the message %q", message)
	return ""
}

func TestRoutesUnderAPIRequireAKeyAndAllRoutesAreDescribed(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	needed := handlerstest.Deps(t, modelstest.Open(t, modelstest.SQLiteURL(t), models.Options{}), issuer, time.Now)
	needed.OperatorToken = operatorToken
	jsonAPI := api.New(needed, nil)
	jsonAPI.Register(engine)
	public := []string{
		"/healthz", "/readyz", "/openapi.json", "/leaks", "/oauth/token",
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
		if !api.Owns(route.Path) {
			t.Errorf("the errors of %s are pages", route.Path)
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
