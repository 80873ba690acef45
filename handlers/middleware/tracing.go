package middleware

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Tracing makes a span of each request, with method, route pattern, status and request id, but none
// of those whose route is in without. It continues the trace of a traceparent header, and never
// copies anything else from the request.
func Tracing(tracer trace.Tracer, without ...string) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx, method := c.Request.Context(), methodOf(c.Request)
		route, _ := outcome(ctx, c)
		if slices.Contains(without, route) {
			c.Next()
			return
		}
		caller := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(c.Request.Header)))
		// The tracestate is free text.
		traced := trace.ContextWithRemoteSpanContext(ctx, caller.WithTraceState(trace.TraceState{}))
		name := method
		if method == otherMethod { // OpenTelemetry has names of its own
			method, name = "_OTHER", "HTTP"
		}
		traced, span := tracer.Start(traced, name+" "+route, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("http.request.method", method),
			attribute.String("http.route", route),
			attribute.String("portal.request_id", RequestIDOf(c)),
		))
		c.Request = c.Request.WithContext(traced)
		defer func() {
			_, status := outcome(ctx, c)
			span.SetAttributes(attribute.Int("http.response.status_code", status))
			if status >= http.StatusInternalServerError {
				span.SetStatus(codes.Error, "")
			}
			span.End()
		}()
		c.Next()
	}
}
