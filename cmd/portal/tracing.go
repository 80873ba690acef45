package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"golang.org/x/net/http/httpguts"
	"google.golang.org/protobuf/proto"
)

const (
	// sendSpansTimeout is the time limit of sending a batch of spans.
	sendSpansTimeout = 10 * time.Second
	// flushSpansTimeout is the time limit of sending the last spans.
	flushSpansTimeout = time.Second
	// maxRefusal limits the bytes of a refusal that are logged.
	maxRefusal = 1 << 10
)

// newTracer returns the tracer that sends spans to the receiver, and a function that sends the last
// ones. Without a receiver, the tracer is nil. The standard OTEL_ variables configure the rest,
// such as the sampler.
func newTracer(ctx context.Context, receiver *spanReceiver, logger *slog.Logger) (tracer trace.Tracer, flush func(), err error) {
	if receiver == nil {
		return nil, func() {}, nil
	}
	exporter, err := otlptrace.New(ctx, receiver)
	if err != nil {
		return nil, nil, err
	}
	// The error handler of OpenTelemetry, which is global, gets the errors of the exporter.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		logger.WarnContext(ctx, "tracing failed", slog.Any("error", err))
	}))
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "portal"), attribute.String("service.version", version)),
		resource.WithFromEnv(), // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
	)
	if err != nil { // about has the attributes that are right
		// The provider would read them again and log the wrong ones.
		_ = os.Unsetenv("OTEL_RESOURCE_ATTRIBUTES")
		logger.WarnContext(ctx, "OTEL_RESOURCE_ATTRIBUTES: some are ignored; write name=value pairs with commas, and percent-encode other characters")
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

// spanReceiver is a server that takes spans over OTLP/HTTP. It implements [otlptrace.Client],
// because OpenTelemetry's own client would bring gRPC into the program, which is 80 packages.
type spanReceiver struct {
	url    string
	header http.Header
}

// Start implements [otlptrace.Client].
func (*spanReceiver) Start(context.Context) error { return nil }

// Stop implements [otlptrace.Client].
func (*spanReceiver) Stop(context.Context) error { return nil }

// UploadTraces implements [otlptrace.Client]. Spans are sent once: if that fails, they are lost.
func (r *spanReceiver) UploadTraces(ctx context.Context, spans []*otlp.ResourceSpans) error {
	// OTLP's request has the same encoding as TracesData, whose package does not import gRPC.
	body, err := proto.Marshal(&otlp.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendSpansTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = r.header.Clone()
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := http.DefaultClient.Do(request)
	if failed, ok := errors.AsType[*url.Error](err); ok { // the URL may have a token
		return fmt.Errorf("send spans to %s: %w", request.URL.Host, failed.Err)
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("send spans to %s: %s: %s", request.URL.Host, response.Status, bytes.TrimSpace(content))
	}
	return err
}

// readSpanReceiver returns the receiver in the standard variables of OTLP, or nil if there is none.
// Traces are no reason not to start, so mistakes are only returned, and then there is no receiver.
func readSpanReceiver() (*spanReceiver, []string) {
	const all, traces = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"
	var found problems
	read := func(name string) string {
		value, err := variable(name)
		if err != nil {
			found.add(name, "%s", err)
		}
		return value
	}
	endpointOf := func(name string) string {
		value := read(name)
		if _, err := receiver(value); err != nil && value != "" {
			found.add(name, "%s", err)
		}
		return value
	}
	// OpenTelemetry's values are case-insensitive.
	is := func(name, value string) bool { return strings.EqualFold(read(name), value) }
	endpoint, base := endpointOf(traces+"ENDPOINT"), endpointOf(all+"ENDPOINT")
	if u, err := url.Parse(base); endpoint == "" && base != "" && err == nil {
		endpoint = u.JoinPath("v1/traces").String() // before a query
	}
	if base+endpoint == "" || is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
		return nil, nil
	}
	if protocol := cmp.Or(read(traces+"PROTOCOL"), read(all+"PROTOCOL")); protocol != "" && !strings.EqualFold(protocol, "http/protobuf") {
		found.add(all+"PROTOCOL", "unsupported protocol%s; use http/protobuf, whose default port is 4318", shown(protocol))
	}
	header, ok := spanHeader(cmp.Or(read(traces+"HEADERS"), read(all+"HEADERS")))
	if !ok {
		found.add(all+"HEADERS", "invalid headers; write name=value pairs with commas, and %%2C for a comma in a value")
	}
	if found.lines != nil {
		return nil, found.lines
	}
	return &spanReceiver{url: endpoint, header: header}, nil
}

// spanHeader reads the headers of OTLP, name=value pairs with commas.
func spanHeader(text string) (header http.Header, ok bool) {
	header = http.Header{}
	for field := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(field) == "" {
			continue
		}
		name, value, assigned := strings.Cut(field, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !assigned || err != nil || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, false
		}
		header.Set(name, value)
	}
	return header, true
}
