package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models/modelstest"
)

func TestSecurityHeadersAreStrict(t *testing.T) {
	headers := securityHeaders(t, "http://127.0.0.1:8080")
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy":           "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
		"Referrer-Policy":              "same-origin",
		"X-Content-Type-Options":       "nosniff",
	} {
		if got := headers.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestTransportSecurityIsSentForAnHTTPSBaseURL(t *testing.T) {
	for baseURL, want := range map[string]string{
		"http://127.0.0.1:8080":      "",
		"https://portal.example.com": "max-age=31536000; includeSubDomains",
	} {
		if got := securityHeaders(t, baseURL).Get("Strict-Transport-Security"); got != want {
			t.Errorf("%s: %q, want %q", baseURL, got, want)
		}
	}
}

func securityHeaders(t *testing.T, base string) http.Header {
	t.Helper()
	baseURL, err := url.Parse(base)
	modelstest.Must(t, err)
	engine := newEngine(middleware.SecurityHeaders(baseURL, func(string) bool { return true }))
	return serve(engine, httptest.NewRequest(http.MethodGet, "/", http.NoBody)).Header()
}

func TestAnyMethodIsHandledAsGetAndLoggedAsItself(t *testing.T) {
	var log bytes.Buffer
	engine := newEngine(middleware.AccessLog(logTo(&log)))
	engine.GET("/any", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	engine.GET("/other", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	handler := middleware.AsGet(engine, func(path string) bool { return path == "/any" })
	for method, logged := range map[string]string{
		http.MethodGet: "GET", http.MethodHead: "HEAD", http.MethodPost: "POST", http.MethodOptions: "OPTIONS",
		http.MethodConnect: "CONNECT", http.MethodTrace: "TRACE", "PROPFIND": "other", "get": "other",
	} {
		log.Reset()
		answer := serve(handler, httptest.NewRequest(method, "/any", http.NoBody))
		if answer.Code != http.StatusNoContent || !strings.Contains(log.String(), `"method":"`+logged+`"`) {
			t.Errorf("%s: status %d, log %s", method, answer.Code, log.String())
		}
	}
	for method, want := range map[string]int{http.MethodHead: http.StatusNoContent, http.MethodPost: http.StatusNotFound} {
		if got := serve(handler, httptest.NewRequest(method, "/other", http.NoBody)).Code; got != want {
			t.Errorf("%s of another path: status %d, want %d", method, got, want)
		}
	}
}

func TestPanicIsA500WithoutItsCause(t *testing.T) {
	var log bytes.Buffer
	engine := newEngine(middleware.RequestID(), middleware.AccessLog(logTo(&log)), recovery(&log))
	engine.GET("/", func(*gin.Context) { panic("out of cheese") })
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("Cookie", "session=confidential")
	answer := serve(engine, r)
	if answer.Code != http.StatusInternalServerError || strings.Contains(answer.Body.String(), "cheese") {
		t.Errorf("response: %d %s", answer.Code, answer.Body)
	}
	id := answer.Header().Get("X-Request-Id")
	for _, want := range []string{"out of cheese", "middleware_test.go", `"request_id":"` + id, `"status":500`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in the log: %s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "confidential") {
		t.Errorf("the log contains a cookie: %s", log.String())
	}
}

func TestPanicDuringTheResponseAbortsTheConnection(t *testing.T) {
	engine := newEngine(recovery(io.Discard))
	engine.GET("/", func(c *gin.Context) {
		c.String(http.StatusOK, "half an ")
		c.Writer.Flush()
		panic("out of cheese")
	})
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	answer, err := server.Client().Get(server.URL)
	modelstest.Must(t, err)
	defer func() { _ = answer.Body.Close() }()
	if content, err := io.ReadAll(answer.Body); err == nil {
		t.Errorf("the client cannot see that the response is incomplete: %q", content)
	}
}

func recovery(log io.Writer) gin.HandlerFunc {
	return middleware.Recovery(logTo(log), func(c *gin.Context, err error) {
		p := problem.From(err)
		c.String(p.Status, p.Message)
	})
}

func TestRequestsAreCountedByRoute(t *testing.T) {
	registry := prometheus.NewRegistry()
	engine := newEngine(metrics(t, registry))
	engine.GET("/things/:id", func(*gin.Context) {})
	engine.GET("/refused", func(c *gin.Context) {
		middleware.SetCode(c, "UNAUTHORIZED")
		c.Status(http.StatusUnauthorized)
	})
	for _, path := range []string{"/things/1", "/things/2", "/elsewhere/1", "/elsewhere/2", "/refused"} {
		serve(engine, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	}
	expectSamples(t, registry,
		`portal_http_requests_total{code="",method="GET",route="/things/:id",status="200"} 2`,
		`portal_http_requests_total{code="",method="GET",route="unmatched",status="404"} 2`,
		`portal_http_requests_total{code="UNAUTHORIZED",method="GET",route="/refused",status="401"} 1`,
		`portal_http_request_duration_seconds_count{method="GET",route="/things/:id"} 2`)
}

func TestRefusedRequestsAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	engine := newEngine(metrics(t, registry))
	full := middleware.NewSlots(0)
	engine.GET("/full", func(c *gin.Context) {
		_ = c.Error(full.Run(func() error { return nil }))
		c.Status(http.StatusServiceUnavailable)
	})
	serve(engine, httptest.NewRequest(http.MethodGet, "/full", http.NoBody))
	expectSamples(t, registry, `portal_http_overload_refusals_total 1`)
}

func TestUntrustedForwardersAreReportedOnce(t *testing.T) {
	var log modelstest.LogBuffer
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	engine := newEngine(middleware.FindClient(trusted), middleware.WarnOfForwarders(trusted, log.Logger()))
	request := func(peer, forwarded string) {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		if r.RemoteAddr = peer; forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		serve(engine, r)
	}
	request("192.0.2.7:1234", "")
	for _, proxy := range []string{"10.0.0.1:1234", "[fd00::1]:1234", "[::ffff:10.0.0.1]:1234"} {
		request(proxy, "198.51.100.1")
	}
	if log.String() != "" {
		t.Errorf("logged %s", log.String())
	}
	request("192.0.2.7:1234", "198.51.100.1")
	request("192.0.2.8:1234", "198.51.100.1")
	text := log.String()
	if strings.Count(text, "\n") != 1 || strings.Contains(text, "198.51") {
		t.Errorf("logged %s", text)
	}
	for _, part := range []string{`"level":"WARN"`, "PORTAL_TRUSTED_PROXIES", `"peer":"192.0.2.7"`} {
		if !strings.Contains(text, part) {
			t.Errorf("logged without %s: %s", part, text)
		}
	}
}

func TestRegisteringTheMetricsTwiceIsAnError(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics(t, registry)
	if _, err := middleware.Metrics(registry); err == nil {
		t.Error("the same metrics were registered twice")
	}
}

func metrics(t *testing.T, registry *prometheus.Registry) gin.HandlerFunc {
	t.Helper()
	counting, err := middleware.Metrics(registry)
	modelstest.Must(t, err)
	return counting
}

// expectSamples fails the test unless the metrics contain these samples.
func expectSamples(t *testing.T, registry *prometheus.Registry, samples ...string) {
	t.Helper()
	scraped := serve(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), httptest.NewRequest(http.MethodGet, "/", http.NoBody)).Body.String()
	for _, sample := range samples {
		if !strings.Contains(scraped, sample+"\n") {
			t.Errorf("no sample %s in\n%s", sample, scraped)
		}
	}
}

func TestFullSlotsRefuseCallsOrLetThemWait(t *testing.T) {
	slots, ran := middleware.NewSlots(1), false
	err := slots.Run(func() error {
		return slots.Run(func() error {
			ran = true
			return nil
		})
	})
	p := problem.From(err)
	if ran || p.Status != http.StatusServiceUnavailable || p.Code != problem.CodeUnavailable || p.RetryAfterSeconds() == "" {
		t.Errorf("a full set of slots returns %+v", p)
	}
	want := errors.New("the result")
	if got := slots.Run(func() error { return want }); !errors.Is(got, want) {
		t.Errorf("got %v", got)
	}

	holding, release := make(chan struct{}), make(chan struct{})
	go func() {
		_ = slots.Run(func() error { close(holding); <-release; return nil })
	}()
	<-holding
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if p := problem.From(slots.RunWhenFree(ended, func() error { return nil })); p.Status != http.StatusServiceUnavailable {
		t.Errorf("after the deadline, a full set of slots returns %+v", p)
	}
	go close(release)
	if got := slots.RunWhenFree(t.Context(), func() error { return want }); !errors.Is(got, want) {
		t.Errorf("after a wait, got %v", got)
	}
}

func newEngine(chain ...gin.HandlerFunc) *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.Use(chain...)
	return engine
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return answer
}

// logTo returns a logger whose handler is a writer too, so that the usual line of a request does
// not go through package slog.
func logTo(w io.Writer) *slog.Logger {
	return slog.New(struct {
		slog.Handler
		io.Writer
	}{slog.NewJSONHandler(w, nil), w})
}

// Browsers send the origin in small letters and without the usual port.
func TestOrigin(t *testing.T) {
	for base, want := range map[string]string{
		"https://portal.example.com": "https://portal.example.com", "https://Portal.Example.com:443": "https://portal.example.com",
		"http://localhost:80": "http://localhost", "http://localhost:8080": "http://localhost:8080", "https://localhost:80": "https://localhost:80",
		"http://[::1]:80": "http://[::1]", "http://[::1]:8080": "http://[::1]:8080",
	} {
		if got := middleware.Origin(modelstest.Value(url.Parse(base))(t)); got != want {
			t.Errorf("%s: %s, want %s", base, got, want)
		}
	}
}
