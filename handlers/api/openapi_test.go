package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"portal/handlers/problem"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/value"
)

func TestDescriptionIsValidOpenAPI31(t *testing.T) {
	document := description(t)
	if document.OpenAPI != "3.1.0" {
		t.Errorf("version %q, want 3.1.0", document.OpenAPI)
	}
	if err := document.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
}

func TestDescriptionIsServedWithTheAddressOfThePortal(t *testing.T) {
	written := modelstest.Value(os.ReadFile("openapi.json"))(t)
	s := newService(t, modelstest.SQLiteURL(t))
	served := s.get("/openapi.json").is(http.StatusOK)
	if want := bytes.Replace(written, []byte(`"url": "/"`), []byte(`"url": "`+issuer+`"`), 1); !bytes.Equal(served.body, want) || bytes.Equal(want, written) {
		t.Errorf("the response is not openapi.json: %.900s", served.body)
	}
}

func TestPublicDocumentsAreCachedAndCompressed(t *testing.T) {
	s := newService(t, modelstest.SQLiteURL(t))
	for _, path := range []string{"/openapi.json", "/.well-known/jwks.json", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
		plain := s.get(path).is(http.StatusOK)
		plain.has("Cache-Control", "public, max-age=300")
		plain.has("Content-Type", "application/json; charset=utf-8")
		etag := plain.header.Get("ETag")
		s.get(path, header("If-None-Match", `"x", "y"`), header("If-None-Match", etag)).is(http.StatusNotModified).has("ETag", etag)
		s.get(path, header("If-None-Match", `"x"`)).is(http.StatusOK)
		packed, request := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, http.NoBody)
		request.Header.Set("Accept-Encoding", "gzip")
		s.handler.ServeHTTP(packed, request)
		reader := modelstest.Value(gzip.NewReader(packed.Body))(t)
		if unpacked := modelstest.Value(io.ReadAll(reader))(t); !bytes.Equal(unpacked, plain.body) || packed.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: compressed: %v %s", path, packed.Header(), unpacked)
		}
	}
}

// The other tests depend on schemas that reject wrong responses.
func TestDescriptionRejectsResponsesOutsideTheContract(t *testing.T) {
	headers := func() http.Header {
		return http.Header{
			"Content-Type": {"application/json"}, "X-Request-Id": {"1"}, "Cache-Control": {"no-store"},
			"Www-Authenticate": {`Bearer realm="api"`}, "X-Error-Reason": {"unknown"},
		}
	}
	if err := validate(t, http.MethodGet, "/api/agents", http.StatusUnauthorized, headers(),
		`{"error": "No.", "code": "UNAUTHORIZED"}`); err != nil {
		t.Fatalf("a correct response is refused: %v", err)
	}
	without := func(name string) http.Header {
		h := headers()
		h.Del(name)
		return h
	}
	for name, wrong := range map[string]struct {
		status int
		header http.Header
		body   string
	}{
		"a third field":         {http.StatusUnauthorized, headers(), `{"error": "No.", "code": "UNAUTHORIZED", "more": 1}`},
		"another code":          {http.StatusUnauthorized, headers(), `{"error": "No.", "code": "FORBIDDEN"}`},
		"no message":            {http.StatusUnauthorized, headers(), `{"code": "UNAUTHORIZED"}`},
		"no challenge":          {http.StatusUnauthorized, without("WWW-Authenticate"), `{"error": "No.", "code": "UNAUTHORIZED"}`},
		"no request id":         {http.StatusUnauthorized, without("X-Request-Id"), `{"error": "No.", "code": "UNAUTHORIZED"}`},
		"cacheable":             {http.StatusUnauthorized, without("Cache-Control"), `{"error": "No.", "code": "UNAUTHORIZED"}`},
		"another status":        {http.StatusForbidden, headers(), `{"error": "No.", "code": "FORBIDDEN"}`},
		"no Retry-After":        {http.StatusTooManyRequests, headers(), `{"error": "No.", "code": "RATE_LIMITED"}`},
		"null for a list":       {http.StatusOK, headers(), `{"agents": null}`},
		"an id that is no UUID": {http.StatusOK, headers(), `{"agents": [{"id": "7", "name": "Front desk"}]}`},
	} {
		if err := validate(t, http.MethodGet, "/api/agents", wrong.status, wrong.header, wrong.body); err == nil {
			t.Errorf("%s: passes", name)
		}
	}
}

func TestErrorExamplesAreTheRealMessages(t *testing.T) {
	for response, sent := range map[string]problem.Problem{
		"AgentNotAllowed":    problem.AgentNotAllowed(),
		"AddressNotAllowed":  problem.From(value.ErrAddressNotAllowed),
		"AgentNotFound":      problem.From(value.ErrAgentNotFound),
		"AccountNotFound":    problem.From(value.ErrAccountNotFound),
		"KeyNotFound":        problem.From(value.ErrKeyNotFound),
		"NotFound":           problem.NotFound(),
		"MethodNotAllowed":   problem.MethodNotAllowed(),
		"PayloadTooLarge":    problem.PayloadTooLarge(16 << 10),
		"RateLimited":        problem.RateLimited("with this API key", time.Second),
		"AddressRateLimited": problem.RateLimited("from this address", time.Second),
		"Internal":           problem.Internal(nil),
		"Unavailable":        problem.Unavailable(nil),
	} {
		for name := range description(t).Components.Responses[response].Value.Content["application/json"].Examples {
			if got := exampleMessage(t, response, name); got != sent.Message {
				t.Errorf("%s: the example %s says %q, and %q is sent", response, name, got, sent.Message)
			}
		}
	}
	for name, sent := range map[string]problem.Problem{"json": problem.UnsupportedMediaType("application/json"), "coding": problem.UnsupportedCoding()} {
		if got := exampleMessage(t, "UnsupportedMediaType", name); got != sent.Message {
			t.Errorf("the example %s says %q, and %q is sent", name, got, sent.Message)
		}
	}
}

// description returns the parsed openapi.json.
func description(t testing.TB) *openapi3.T {
	t.Helper()
	return modelstest.Value(loadDescription())(t)
}

var loadDescription = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromFile("openapi.json")
})

// followsDescription fails the test unless the document has the response's status, headers, type
// and body.
func (a answer) followsDescription(r *http.Request) {
	a.t.Helper()
	// The scanners describe the responses to their reports, and LiveKit those to its webhooks.
	succeeds := strings.HasPrefix(r.URL.Path, "/leaks/") && a.status < http.StatusBadRequest || r.URL.Path == "/livekit/webhook" ||
		// Described in words: beside JSON, generated clients would have no type for a
		// report.
		a.header.Get("Content-Type") == "application/x-ndjson"
	if err := validate(a.t, r.Method, r.URL.Path, a.status, a.header, string(a.body)); err != nil && !succeeds {
		a.t.Errorf("%s %s: not as described: %v", r.Method, r.URL.Path, err)
	}
	for name := range a.header {
		public := r.URL.Path == "/openapi.json" || strings.HasPrefix(r.URL.Path, "/.well-known/")
		if strings.HasPrefix(name, "Access-Control-") && !public {
			a.t.Errorf("%s %s: has the CORS header %s", r.Method, r.URL.Path, name)
		}
	}
}

func validate(t testing.TB, method, path string, status int, header http.Header, body string) error {
	t.Helper()
	document := description(t)
	if described, found := gatewayPath(path); found {
		path = described
		if method != http.MethodHead {
			method = http.MethodGet
		}
	}
	route := &routers.Route{Spec: document, Path: path, Method: method, PathItem: &openapi3.PathItem{}}
	if item := document.Paths.Find(describedPath(document, path)); item != nil {
		route.PathItem = item
		if method == http.MethodHead {
			method = http.MethodGet
		}
		route.Operation = item.GetOperation(method)
	}
	if route.Operation == nil {
		route.Operation = noOperation(document, path)
	}
	return openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: &http.Request{Method: route.Method}, Route: route,
		},
		Status:  status,
		Header:  header,
		Body:    io.NopCloser(strings.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	})
}

// gatewayPath returns the described path of a gateway's request, which has any method and may have
// any path below the described one.
func gatewayPath(path string) (described string, found bool) {
	for _, described := range []string{"/api/authorize", "/widget/authorize"} {
		if path == described || strings.HasPrefix(path, described+"/") {
			return described, true
		}
	}
	return "", false
}

// describedPath returns the path in the document that describes a path: its parameters stand for
// any segment.
func describedPath(document *openapi3.T, path string) string {
	sent := strings.Split(path, "/")
	for described := range document.Paths.Map() {
		same := slices.EqualFunc(strings.Split(described, "/"), sent, func(want, segment string) bool {
			return want == segment || strings.HasPrefix(want, "{")
		})
		if same {
			return described
		}
	}
	return path
}

// noOperation returns the responses of a path under /api, /operator or /leaks without an operation.
func noOperation(document *openapi3.T, path string) *openapi3.Operation {
	responses := document.Components.Responses
	possible := openapi3.NewResponses(
		openapi3.WithStatus(http.StatusNotFound, responses["NotFound"]),
		openapi3.WithStatus(http.StatusMethodNotAllowed, responses["MethodNotAllowed"]),
		openapi3.WithStatus(http.StatusInternalServerError, responses["Internal"]),
		openapi3.WithStatus(http.StatusServiceUnavailable, responses["Unavailable"]),
	)
	switch {
	case strings.HasPrefix(path, "/operator"):
		possible.Set("401", responses["OperatorUnauthorized"])
	case strings.HasPrefix(path, "/leaks"):
		possible.Set("400", responses["InvalidRequest"])
		possible.Set("401", responses["OperatorUnauthorized"])
		possible.Set("413", responses["PayloadTooLarge"])
	default:
		possible.Set("401", responses["Unauthorized"])
		possible.Set("403", responses["KeyNotAllowed"])
		possible.Set("429", responses["RateLimited"])
	}
	return &openapi3.Operation{Responses: possible}
}

// The webhooks of the document are the events of the program.
func TestOpenAPIHasAllEvents(t *testing.T) {
	var document struct {
		Webhooks map[string]struct {
			Post struct {
				RequestBody struct {
					Content map[string]struct {
						Schema struct {
							Properties struct {
								Type struct{ Examples []string }
							}
						}
					}
				}
			}
		}
	}
	modelstest.Must(t, json.Unmarshal(modelstest.Value(os.ReadFile("openapi.json"))(t), &document))
	var got []string
	for _, described := range document.Webhooks {
		got = append(got, described.Post.RequestBody.Content["application/json"].Schema.Properties.Type.Examples...)
	}
	want := []string{record.EventTest}
	for _, group := range record.EventGroups {
		want = append(want, record.Events(group)...)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("openapi.json has %q,\nwant %q", got, want)
	}
}
