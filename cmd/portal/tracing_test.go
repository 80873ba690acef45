package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"portal/models/modelstest"
)

// collectorServer receives spans over OTLP/HTTP.
type collectorServer struct {
	*httptest.Server

	mu    sync.Mutex
	raw   bytes.Buffer // all bodies
	spans []*otlp.Span
}

func newCollector(t *testing.T) *collectorServer {
	t.Helper()
	r := &collectorServer{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		var export collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &export)
		}
		if err != nil || request.URL.Path != "/v1/traces" || request.Header.Get("X-Team") != "voice portal" {
			t.Errorf("%s %v: %v", request.URL.Path, request.Header, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.raw.Write(body)
		for _, resource := range export.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				r.spans = append(r.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// names returns the names of the trace's spans.
func (r *collectorServer) names(traceID string) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[string]int{}
	for _, span := range r.spans {
		if hex.EncodeToString(span.GetTraceId()) == traceID {
			names[span.GetName()]++
		}
	}
	return names
}

func TestTracesHaveRequestsAndStatementsWithoutSecrets(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		receiver := newCollector(t)
		i, account := startWithAccount(t, databaseURL, "OTEL_EXPORTER_OTLP_ENDPOINT="+receiver.URL+"/?tenant=1",
			"OTEL_EXPORTER_OTLP_HEADERS=X-Team=voice%20portal, X-Other=1")
		for range 3 {
			i.Get("/healthz").Is(http.StatusOK)
			i.Get("/readyz").Is(http.StatusOK)
		}
		v := i.signedIn(t)
		v.Get("/api-keys?filter=confidential")

		const traceID = "0af7651916cd43dd8448eb211c80319c"
		response := i.Get("/api/agents?token=confidential", modelstest.Bearer(account.secret), "Tracestate: note=confidential",
			"Traceparent: 00-"+traceID+"-b7ad6b7169203331-01", "User-Agent: confidential", "X-Forwarded-For: confidential")
		i.Send("CONFIDENTIAL", "/nothing", "")
		i.stop(t)

		names := receiver.names(traceID)
		if len(names) != 3 || names["GET /api/agents"] != 1 || names["authenticate"] != 1 || names["SELECT agents"] != 1 {
			t.Errorf("the spans of the request are %v", names)
		}
		sent := receiver.raw.String()
		for _, want := range []string{"POST /login", "HTTP unmatched", "_OTHER", "SELECT api_keys", response.Header.Get("X-Request-Id"), "service.version"} {
			if !strings.Contains(sent, want) {
				t.Errorf("no span has %s", want)
			}
		}
		if strings.Contains(sent, "GET /healthz") || strings.Contains(sent, "GET /readyz") {
			t.Error("health checks have spans")
		}
		cookies := v.Jar.Cookies(modelstest.Value(url.Parse(i.URL))(t))
		if len(cookies) == 0 {
			t.Error("there are no cookies")
		}
		secrets := []string{account.secret, testEmail, testPassword, "confidential", "note="}
		for _, cookie := range cookies {
			secrets = append(secrets, cookie.Value)
		}
		for _, secret := range secrets {
			if strings.Contains(sent, secret) {
				t.Errorf("the spans contain %q", secret)
			}
		}
	})
}

func TestTracingNeedsAnEndpointAndASupportedProtocol(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, test := range []struct {
		endpoint, name, value string
		tracing               bool
		warning               string
	}{
		{"", "OTEL_SERVICE_NAME", "keys", false, ""},
		{"", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces.example.com/v1/traces", true, ""},
		{"http://127.0.0.1:4318\n", "OTEL_SERVICE_NAME", "keys", true, ""},
		{"http://user:hunter%40@traces.example.com/a%40b", "OTEL_SERVICE_NAME", "keys", true, ""},
		{"http://127.0.0.1:4318", "OTEL_SDK_DISABLED", "True", false, ""},
		{"http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER", "None", false, ""},
		{"http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_PROTOCOL", "HTTP/protobuf", true, ""},
		{"http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_CERTIFICATE", "/hunter2.pem", true, "OTEL_EXPORTER_OTLP_CERTIFICATE is not used"},
		{"http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "/hunter2.pem", true, "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY is not used"},
		{"http://127.0.0.1:4318", "SSL_CERT_FILE", "/missing.pem", true, "SSL_CERT_FILE: "},
		{"", "SSL_CERT_FILE", "/missing.pem", false, "SSL_CERT_FILE: "},
		{"", "SSL_CERT_DIR", "/missing:/", false, "SSL_CERT_DIR: "},
		{"", "SSL_CERT_DIR", "/", false, ""},
		{"127.0.0.1:4318", "OTEL_SERVICE_NAME", "keys", false, endpoint + ": invalid URL"},
		{"http://user:hunter%zz@traces.example.com", "OTEL_SERVICE_NAME", "keys", false, endpoint + ": invalid URL"},
		{"http://user:12345/hunter2@traces.example.com", "OTEL_SERVICE_NAME", "keys", false, endpoint + ": invalid URL"},
		{"", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://hunter2\t2", false, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "},
		{"http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", false, "OTEL_EXPORTER_OTLP_PROTOCOL: unsupported protocol"},
		{"http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_HEADERS", "hunter2", false, "OTEL_EXPORTER_OTLP_HEADERS: invalid headers"},
		{"http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_HEADERS", "hunter 2=1", false, "OTEL_EXPORTER_OTLP_HEADERS: invalid headers"},
		{"http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_HEADERS", "X-Team=hunter%0A2", false, "OTEL_EXPORTER_OTLP_HEADERS: invalid headers"},
	} {
		t.Run("", func(t *testing.T) { // restores the variables
			s, found := parse(t, map[string]string{endpoint: test.endpoint, test.name: test.value})
			warnings := strings.Join(s.doubts(), "")
			modelstest.Facts(t, fmt.Sprintf("%+v: warnings %q, errors %q", test, warnings, found), map[string]bool{
				"tracing":    (s.spans != nil) == test.tracing,
				"no error":   len(found) == 0,
				"warning":    strings.HasPrefix(warnings, test.warning) && (warnings == "") == (test.warning == ""),
				"no secrets": !strings.Contains(warnings, "hunter"),
			})
		})
	}
}

func TestAMistakeInASettingOfTelemetryIsAWarning(t *testing.T) {
	t.Parallel()
	i := start(t, []string{
		anyPort, "OTEL_EXPORTER_OTLP_ENDPOINT=http://hunter2:hunter3@127.0.0.1:1", "OTEL_RESOURCE_ATTRIBUTES=hunter4", "OTEL_TRACES_SAMPLER=sometimes",
		"OTEL_BSP_SCHEDULE_DELAY=1",
	})
	i.Get("/login").Is(http.StatusOK)
	i.stop(t)
	for _, want := range []string{"OTEL_RESOURCE_ATTRIBUTES", "sometimes", "send spans to 127.0.0.1:1"} {
		if line := i.stderr.LineWith(want); !strings.Contains(line, `"level":"WARN"`) {
			t.Errorf("want a warning with %q in %s", want, i.stderr.String())
		}
	}
	if strings.Contains(i.stderr.String(), "hunter") {
		t.Errorf("a secret is in %s", i.stderr.String())
	}
}
