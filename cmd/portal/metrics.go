package main

import (
	"context"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"portal/models"
)

// newRegistry returns a registry with the metrics of the Go runtime, the process and the store. The
// handlers add those of requests.
func newRegistry(store *models.Store) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		storeCollector{store},
	)
	return registry
}

// metricsHandler returns the handler of GET /metrics. Other requests get 404 or 405.
func metricsHandler(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2}))
	return mux
}

// sessionsTimeout is the time limit of the only query that /metrics makes.
const sessionsTimeout = time.Second

// storeMetrics are the metrics of the store that need no query.
var storeMetrics = []storeMetric{
	counter("authentication_lookups_total", "API keys looked up. Divided by the statements, this is the mean size of a batch.",
		func(s models.Stats) float64 { return float64(s.Authentication.Lookups) }),
	counter("authentication_statements_total", "Database statements that looked up batches of API keys.",
		func(s models.Stats) float64 { return float64(s.Authentication.Statements) }),
	counter("authentication_failures_total", "Batches of API keys for which the database did not answer.",
		func(s models.Stats) float64 { return float64(s.Authentication.Failures) }),
	counter("authentication_epoch_changes_total", "Times that the keys in memory were dropped because access had changed.",
		func(s models.Stats) float64 { return float64(s.Authentication.EpochChanges) }),
	gauge("usage_pending_keys", "API keys whose latest usage is not in the database yet.",
		func(s models.Stats) float64 { return float64(s.PendingKeys) }),
	gauge("usage_flush_lag_seconds", "Age of the oldest usage that is not in the database yet.",
		func(s models.Stats) float64 { return s.FlushLag.Seconds() }),
	gauge("password_queue_length", "Passwords that wait for their check.",
		func(s models.Stats) float64 { return float64(s.HashQueue) }),
	gauge("database_connections_open", "Open connections of the pool.",
		func(s models.Stats) float64 { return float64(s.Pool.OpenConnections) }),
	gauge("database_connections_in_use", "Connections of the pool that run a statement.",
		func(s models.Stats) float64 { return float64(s.Pool.InUse) }),
	gauge("database_connections_max", "Limit of the pool.",
		func(s models.Stats) float64 { return float64(s.Pool.MaxOpenConnections) }),
	counter("database_connection_waits_total", "Requests that had to wait for a connection of the pool.",
		func(s models.Stats) float64 { return float64(s.Pool.WaitCount) }),
	counter("database_connection_wait_seconds_total", "Time that requests waited for a connection of the pool.",
		func(s models.Stats) float64 { return s.Pool.WaitDuration.Seconds() }),
}

var (
	buildInfo = prometheus.NewDesc("portal_build_info", "Always 1. The labels are the versions of the portal and of Go.", []string{"version", "go_version"}, nil)
	sessions  = prometheus.NewDesc("portal_sessions", "Sessions of users in the database. Missing if the database does not answer.", nil, nil)
)

type storeMetric struct {
	description *prometheus.Desc
	kind        prometheus.ValueType
	value       func(models.Stats) float64
}

func counter(name, help string, value func(models.Stats) float64) storeMetric {
	return storeMetric{prometheus.NewDesc("portal_"+name, help, nil, nil), prometheus.CounterValue, value}
}

func gauge(name, help string, value func(models.Stats) float64) storeMetric {
	return storeMetric{prometheus.NewDesc("portal_"+name, help, nil, nil), prometheus.GaugeValue, value}
}

// storeCollector reads the state of the store when Prometheus asks.
type storeCollector struct{ store *models.Store }

// Describe implements [prometheus.Collector].
func (storeCollector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- buildInfo
	descriptions <- sessions
	for _, metric := range storeMetrics {
		descriptions <- metric.description
	}
}

// Collect implements [prometheus.Collector].
func (c storeCollector) Collect(metrics chan<- prometheus.Metric) {
	metrics <- prometheus.MustNewConstMetric(buildInfo, prometheus.GaugeValue, 1, version, runtime.Version())
	stats := c.store.Stats()
	for _, metric := range storeMetrics {
		metrics <- prometheus.MustNewConstMetric(metric.description, metric.kind, metric.value(stats))
	}
	ctx, cancel := context.WithTimeout(context.Background(), sessionsTimeout)
	defer cancel()
	if count, err := c.store.CountSessions(ctx); err == nil {
		metrics <- prometheus.MustNewConstMetric(sessions, prometheus.GaugeValue, float64(count))
	}
}
