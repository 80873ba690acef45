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
)

func TestRequestsAreCountedByRoute(t *testing.T) {
	registry := prometheus.NewRegistry()
	engine := newEngine(metrics(t, registry))
	engine.GET("/things/:id", func(*gin.Context) {})
	for _, path := range []string{"/things/1", "/things/2", "/elsewhere/1", "/elsewhere/2"} {
		serve(engine, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	}
	expectSamples(t, registry,
		`portal_http_requests_total{method="GET",route="/things/:id",status="200"} 2`,
		`portal_http_requests_total{method="GET",route="unmatched",status="404"} 2`,
		`portal_http_request_duration_seconds_count{method="GET",route="/things/:id"} 2`)
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
	if err != nil {
		t.Fatal(err)
	}
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
