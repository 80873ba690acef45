package record

import (
	"context"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
)

// EventGroup is a group of events that an endpoint chooses.
type EventGroup string

// The groups of events.
const (
	GroupKeys   EventGroup = "keys"
	GroupCalls  EventGroup = "calls"
	GroupPeople EventGroup = "people"
)

// EventGroups are the groups in the order of the form.
var EventGroups = []EventGroup{GroupKeys, GroupCalls, GroupPeople}

// The events that are no activity.
const (
	EventCallStarted = "call.started"
	EventCallEnded   = "call.ended"
	EventTest        = "webhook.test"
)

// Event is the type of an event and the id of the activity or the call.
type Event struct {
	Type string
	ID   uuid.UUID
}

// FanOut queues events for the account's endpoints unless webhooks are off, even in a process that
// sends none, because the commands of operators do not know whether the portal does. One statement
// does it for all endpoints. An event that an endpoint has already is left out.
func FanOut(ctx context.Context, tx db.Tx, group EventGroup, accountID uuid.UUID, events ...Event) error {
	if tx.DB.WebhooksOff {
		return nil
	}
	now := tx.Now()
	for _, e := range events {
		endpoints := tx.NewSelect().TableExpr("webhook_endpoints AS endpoint").
			ColumnExpr("endpoint.id, ?, ?, endpoint.account_id, ?, ?", bun.Safe(tx.DB.Typed("uuid", e.ID.String())), e.Type, now, now).
			Where("endpoint.account_id = ? AND endpoint.disabled_at IS NULL AND endpoint.event_groups LIKE ?", accountID, `%"`+string(group)+`"%`)
		_, err := tx.ExecContext(ctx, "INSERT INTO webhook_deliveries (endpoint_id, event_id, event, account_id, created_at, due_at) ? ON CONFLICT DO NOTHING", endpoints)
		if err != nil {
			return err
		}
	}
	return nil
}
