package middleware

import (
	"fmt"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts requests by method, route pattern, status and code of the API's errors, and
// measures their duration by method and route pattern. It also counts those that were refused
// because there were too many. If registry already has these metrics, Metrics returns an error.
func Metrics(registry prometheus.Registerer) (gin.HandlerFunc, error) {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "portal_http_requests_total",
		Help: "Requests answered, by method, route pattern, status and the code of the API's errors; 499 is a client that disconnected before the response.",
	}, []string{"method", "route", "status", "code"})
	refusals := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "portal_http_overload_refusals_total",
		Help: "Requests refused with 503 because too many others were waiting.",
	})
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "portal_http_request_duration_seconds",
		Help:    "Time from the request's headers to the end of its response, by method and route pattern.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
	}, []string{"method", "route"})
	for _, metric := range []prometheus.Collector{requests, refusals, durations} {
		if err := registry.Register(metric); err != nil {
			return nil, fmt.Errorf("register the request metrics: %w", err)
		}
	}

	return func(c *gin.Context) {
		start, ctx, method := time.Now(), c.Request.Context(), methodOf(c.Request)
		defer func() {
			route, status := outcome(ctx, c)
			requests.WithLabelValues(method, route, strconv.Itoa(status), c.GetString(codeKey)).Inc()
			if refusedBusy(c) {
				refusals.Inc()
			}
			durations.WithLabelValues(method, route).Observe(time.Since(start).Seconds())
		}()
		c.Next()
	}, nil
}
