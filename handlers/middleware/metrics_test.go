package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"portal/handlers/middleware"
	"portal/models/modelstest"
)

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
