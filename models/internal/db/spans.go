package db

import (
	"context"
	"database/sql"
	"errors"
	"regexp"

	"github.com/uptrace/bun"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// statementSpans is a [bun.QueryHook] that makes a span of each statement of a traced request. A
// span has the operation and the table, and never the SQL, which contains the arguments.
type statementSpans struct{ tracer trace.Tracer }

// tableName does not match an expression in place of a table, which may contain arguments.
var tableName = regexp.MustCompile(`^[a-z_]+$`)

// NewStatementSpans returns a hook that begins a span for each statement of a traced request.
func NewStatementSpans(tracer trace.Tracer) bun.QueryHook { return statementSpans{tracer} }

// BeforeQuery implements [bun.QueryHook].
func (h statementSpans) BeforeQuery(ctx context.Context, event *bun.QueryEvent) context.Context {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx // a background task
	}
	name := event.Operation()
	attributes := append(SystemOf(event.DB), attribute.String("db.operation.name", name))
	if event.IQuery != nil && tableName.MatchString(event.IQuery.GetTableName()) {
		attributes = append(attributes, attribute.String("db.collection.name", event.IQuery.GetTableName()))
		name += " " + event.IQuery.GetTableName()
	}
	ctx, _ = h.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	return ctx
}

// AfterQuery implements [bun.QueryHook].
func (h statementSpans) AfterQuery(ctx context.Context, event *bun.QueryEvent) {
	span := trace.SpanFromContext(ctx)
	if event.Err != nil && !errors.Is(event.Err, sql.ErrNoRows) {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// SystemOf returns the attributes that name the database.
func SystemOf(db bun.IDB) []attribute.KeyValue {
	system := "sqlite"
	if IsPostgres(db) {
		system = "postgresql"
	}
	return []attribute.KeyValue{attribute.String("db.system.name", system)}
}
