package main

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// flushSpansTimeout is the time limit of sending the last spans.
const flushSpansTimeout = time.Second

// newTracer returns the tracer that sends spans to the OTLP endpoint in the environment, and a
// function that sends the last ones. The tracer is nil if there is no endpoint. The standard
// OTEL_ variables configure the rest, such as the sampler and the headers.
func newTracer(ctx context.Context, tracing bool, logger *slog.Logger) (tracer trace.Tracer, flush func(), err error) {
	if !tracing {
		return nil, func() {}, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nil, err
	}
	// The error handler of OpenTelemetry is global. It gets the errors of the exporter.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		logger.WarnContext(ctx, "tracing failed", slog.Any("error", err))
	}))
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "portal"), attribute.String("service.version", version)),
		resource.WithFromEnv(), // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
	)
	if err != nil {
		return nil, nil, err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return provider.Tracer("portal"), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushSpansTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			logger.WarnContext(ctx, "traces lost", slog.Any("error", err))
		}
	}, nil
}

// tracing reports whether the environment asks for traces, and checks the variables that the
// exporter would ignore if they were invalid.
func (c *checker) tracing() bool {
	endpoint := func(name string) string { return c.link(name, os.Getenv(name), "http", "https") }
	all, traces := endpoint("OTEL_EXPORTER_OTLP_ENDPOINT"), endpoint("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if all == "" && traces == "" || os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	const name = "OTEL_EXPORTER_OTLP_PROTOCOL"
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv(name))
	if protocol != "" && protocol != "http/protobuf" {
		c.add(name, "unsupported protocol %q; use http/protobuf, whose default port is 4318", protocol)
	}
	return true
}
