package webhooks

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/calls"
	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

// Turn says which endpoint is next.
type Turn struct {
	// Endpoints and Accounts are left out: they have as many attempts as they may have.
	Endpoints, Accounts []uuid.UUID
	// Served are endpoints whose turn comes after that of all others.
	Served []uuid.UUID
}

// Claim leases the delivery that is due at the endpoint whose turn it is, of several the one that
// has waited longest, and returns what to send. If nothing is due, the error is
// [value.ErrNoDelivery].
func (w *Webhooks) Claim(ctx context.Context, turn Turn) (content DeliveryContent, err error) {
	endpoint, err := w.nextEndpoint(ctx, turn)
	if err != nil {
		return content, value.Failed("claim a delivery", value.NoRows(err, value.ErrNoDelivery))
	}
	content, err = db.InTx(ctx, w.db, "claim a delivery", func(ctx context.Context, tx db.Tx) (content DeliveryContent, err error) {
		now := tx.Now()
		due := tx.NewSelect().Model((*Delivery)(nil)).Column("event_id", "event").
			Where("delivery.endpoint_id = ? AND delivery.due_at <= ?", endpoint.ID, now).OrderExpr("delivery.due_at").Limit(1)
		var claimed struct {
			EventID uuid.UUID
			Event   string
		}
		if err := w.db.Locked(due, "UPDATE SKIP LOCKED").Scan(ctx, &claimed); err != nil {
			return content, value.NoRows(err, value.ErrNoDelivery)
		}
		_, err = tx.NewUpdate().Model((*Delivery)(nil)).Set("due_at = ?, attempts = attempts + 1", now.Add(deliveryLease)).
			Where("endpoint_id = ? AND event_id = ? AND event = ?", endpoint.ID, claimed.EventID, claimed.Event).Exec(ctx)
		if err != nil {
			return content, err
		}
		return content, tx.NewSelect().Model(&content.Delivery).
			Where("endpoint_id = ? AND event_id = ? AND event = ?", endpoint.ID, claimed.EventID, claimed.Event).Scan(ctx)
	})
	if err != nil {
		return content, err
	}
	content.URL = endpoint.URL
	content.Secrets = w.openSecrets(ctx, endpoint)
	content.Body, err = w.body(ctx, content.Delivery, endpoint)
	return content, err
}

// nextEndpoint returns the enabled endpoint whose turn it is and whose delivery has been due
// longest. It looks at the deliveries that are due, and passes over those of endpoints that are
// left out or come last. If these are too many, it looks at one delivery of each endpoint that has
// one waiting. So it never looks at idle endpoints.
func (w *Webhooks) nextEndpoint(ctx context.Context, turn Turn) (endpoint Endpoint, err error) {
	until, many := w.db.Now(), true
	err = w.db.NewSelect().Model((*Delivery)(nil)).Column("due_at").Where("delivery.due_at <= ?", until).
		OrderExpr("delivery.due_at").Offset(maxPassedOver).Limit(1).Scan(ctx, &until)
	if errors.Is(err, sql.ErrNoRows) {
		many, err = false, nil
	}
	if err != nil {
		return endpoint, err
	}
	due := func(left []uuid.UUID) *bun.SelectQuery {
		// Not a join, so that no planner begins with the endpoints.
		disabled := w.db.NewSelect().Model((*Endpoint)(nil)).Column("disabled_at").Where("endpoint.id = delivery.endpoint_id")
		first := w.db.NewSelect().Model((*Delivery)(nil)).Column("endpoint_id").
			Where("delivery.due_at <= ? AND (?) IS NULL", until, disabled).OrderExpr("delivery.due_at, delivery.endpoint_id").Limit(1)
		first = except(first, "delivery.endpoint_id", left, "delivery.account_id", turn.Accounts)
		return w.db.NewSelect().Model(&endpoint).Where("endpoint.id = (?)", first)
	}
	if err = due(slices.Concat(turn.Endpoints, turn.Served)).Scan(ctx); !errors.Is(err, sql.ErrNoRows) {
		return endpoint, err
	}
	if !many {
		return endpoint, due(turn.Endpoints).Scan(ctx)
	}
	query := w.db.NewSelect().Model(&endpoint).ModelTableExpr("(?) AS waiting CROSS JOIN webhook_endpoints AS endpoint", w.eachWaiting()).
		Where("endpoint.id = waiting.endpoint_id AND endpoint.disabled_at IS NULL AND waiting.due_at <= ?", w.db.Now()).Limit(1)
	query = except(query, "endpoint.id", turn.Endpoints, "endpoint.account_id", turn.Accounts)
	if len(turn.Served) > 0 {
		query = query.OrderExpr("CASE WHEN endpoint.id IN (?) THEN 1 ELSE 0 END", bun.List(turn.Served))
	}
	return endpoint, query.OrderExpr("waiting.due_at, endpoint.id").Scan(ctx)
}

// except leaves these endpoints and accounts out of a query with columns for them.
func except(query *bun.SelectQuery, endpointColumn string, endpoints []uuid.UUID, accountColumn string, accounts []uuid.UUID) *bun.SelectQuery {
	return query.Apply(
		db.WhereIf(len(endpoints) > 0, "? NOT IN (?)", bun.Ident(endpointColumn), bun.List(endpoints)),
		db.WhereIf(len(accounts) > 0, "? NOT IN (?)", bun.Ident(accountColumn), bun.List(accounts)),
	)
}

// eachWaiting returns the query for the endpoints with a delivery that waits, and when the first of
// each is due. An index has them in order, and each step leads from one to the next.
func (w *Webhooks) eachWaiting() *bun.SelectQuery {
	next := func() *bun.SelectQuery {
		return w.db.NewSelect().Model((*Delivery)(nil)).Column("endpoint_id").Where("delivery.due_at IS NOT NULL").OrderExpr("delivery.endpoint_id").Limit(1)
	}
	each := w.db.NewSelect().ColumnExpr("(?) AS endpoint_id", next()).
		UnionAll(w.db.NewSelect().ColumnExpr("(?)", next().Where("delivery.endpoint_id > each.endpoint_id")).TableExpr("each").Where("each.endpoint_id IS NOT NULL"))
	first := w.db.NewSelect().Model((*Delivery)(nil)).ColumnExpr("min(delivery.due_at)").Where("delivery.endpoint_id = each.endpoint_id AND delivery.due_at IS NOT NULL")
	return w.db.NewSelect().WithRecursive("each", each).ColumnExpr("endpoint_id, (?) AS due_at", first).TableExpr("each")
}

// openSecrets returns the secrets that sign, or none if they cannot be decrypted.
func (w *Webhooks) openSecrets(ctx context.Context, e Endpoint) [][]byte {
	secret, err := w.sealer.Open(e.Secret, e.KeyID, e.ID[:])
	if err != nil {
		w.db.Logger.ErrorContext(ctx, "cannot decrypt the secret of a webhook", slog.String("endpoint", e.ID.String()), slog.Any("error", err))
		return nil
	}
	secrets := [][]byte{secret}
	if e.PreviousUntil != nil && w.db.Now().Before(*e.PreviousUntil) {
		if previous, err := w.sealer.Open(e.Previous, e.PreviousKeyID, e.ID[:]); err == nil {
			secrets = append(secrets, previous)
		}
	}
	return secrets
}

// body returns the body of a delivery: the event as reports have it. It is nil if the event is
// gone.
func (w *Webhooks) body(ctx context.Context, d Delivery, e Endpoint) ([]byte, error) {
	content := struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      any       `json:"data"`
	}{Type: d.Event}
	switch d.Event {
	case record.EventTest:
		test := record.Activity{ID: d.EventID, Action: record.EventTest, ActorKind: record.ActorSystem, SubjectID: &e.ID, Label: e.URL, At: d.CreatedAt, Count: 1}
		content.Timestamp, content.Data = test.At.UTC(), test.Element()
	case record.EventCallStarted, record.EventCallEnded:
		var call calls.Call
		if err := w.db.NewSelect().Model(&call).Where("call.id = ? AND call.account_id = ?", d.EventID, d.AccountID).Scan(ctx); err != nil {
			return nil, value.Failed("read the call of a delivery", value.NoRows(err, nil))
		}
		content.Timestamp, content.Data = call.StartedAt.UTC(), call.Element(w.db.Now())
		if d.Event == record.EventCallEnded && call.EndedAt != nil {
			content.Timestamp = call.EndedAt.UTC()
		}
	default:
		var activities []record.Activity
		err := record.SelectActivities(w.db, &activities).ColumnExpr("COALESCE(r.repeats, 0) AS repeats").
			Join("LEFT JOIN activity_repeats AS r ON r.activity_id = activity.id").
			Where("activity.id = ? AND activity.account_id = ?", d.EventID, d.AccountID).Scan(ctx)
		if err != nil || len(activities) == 0 {
			return nil, value.Failed("read the activity of a delivery", err)
		}
		content.Timestamp, content.Data = activities[0].At.UTC(), activities[0].Element()
	}
	var body strings.Builder
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(content)
	return []byte(strings.TrimSuffix(body.String(), "\n")), err
}

// Finish records the outcome of an attempt. It schedules the next one, or after the last one leaves
// the delivery as it is. It changes nothing if the lease has ended and another instance has claimed
// the delivery since, or if the endpoint was removed. An endpoint that is gone or has failed for
// long is disabled.
func (w *Webhooks) Finish(ctx context.Context, d Delivery, result DeliveryResult) error {
	return w.db.InTx(ctx, "record a delivery", func(ctx context.Context, tx db.Tx) error {
		endpoint, err := lockEndpoint(ctx, tx, d.AccountID, d.EndpointID)
		if err != nil {
			return value.NoRows(err, nil)
		}
		now := tx.Now()
		update := tx.NewUpdate().Model((*Delivery)(nil)).Set("status = ?, response = ?", result.Status, result.Text).
			Where("endpoint_id = ? AND event_id = ? AND event = ? AND attempts = ? AND due_at IS NOT NULL", d.EndpointID, d.EventID, d.Event, d.Attempts)
		switch {
		case result.Succeeded():
			update = update.Set("due_at = NULL, delivered_at = ?", now)
		case d.Final || d.Attempts > len(deliveryRetries) || endpoint.DisabledAt != nil:
			update = update.Set("due_at = NULL")
		default:
			update = update.Set("due_at = ?", now.Add(deliveryRetry(d.Attempts, result.RetryAfter)))
		}
		changed, err := value.Affected(update.Exec(ctx))
		if err != nil || changed == 0 || endpoint.DisabledAt != nil {
			return err
		}
		switch {
		case !result.Succeeded():
			err = w.fail(ctx, tx, endpoint, d, result)
		case endpoint.FailingSince != nil:
			endpoint.FailingSince, endpoint.Failures, endpoint.FailureMailedAt = nil, 0, nil
			err = tx.Update(ctx, &endpoint, "failing_since", "failures", "failure_mailed_at")
		}
		if err != nil {
			return err
		}
		// Also after a success: a receiver can be slower than the events.
		return dropOldest(ctx, tx, d.AccountID)
	})
}

// deliveryRetry returns the time from a failed attempt to the next one.
func deliveryRetry(attempts int, retryAfter time.Duration) time.Duration {
	wait := deliveryRetries[attempts-1]
	wait += time.Duration((rand.Float64() - 0.5) / 5 * float64(wait)) //nolint:gosec // no secret
	return max(wait, min(retryAfter, longestRetryAfter))
}

// fail records that an attempt of an endpoint has failed.
func (w *Webhooks) fail(ctx context.Context, tx db.Tx, endpoint Endpoint, d Delivery, result DeliveryResult) error {
	now := tx.Now()
	if endpoint.FailingSince == nil {
		endpoint.FailingSince = &now
	}
	if d.Attempts == 1 {
		endpoint.Failures++
	}
	failing := now.Sub(*endpoint.FailingSince)
	switch {
	case result.Gone:
		return Disable(ctx, tx, endpoint, record.System, "the endpoint answered 410 Gone")
	case failing >= failingPeriod && endpoint.Failures >= leastFailures:
		return Disable(ctx, tx, endpoint, record.System, "all deliveries of 5 days failed")
	case failing >= failureMailAfter && endpoint.FailureMailedAt == nil:
		endpoint.FailureMailedAt = &now
		if err := mailFailure(ctx, tx, endpoint); err != nil {
			return err
		}
	}
	return tx.Update(ctx, &endpoint, "failing_since", "failures", "failure_mailed_at")
}

// mailFailure queues the mails to the owners about an endpoint that has failed for an hour.
func mailFailure(ctx context.Context, tx db.Tx, endpoint Endpoint) error {
	if !tx.DB.Mails {
		return nil
	}
	recipients, err := record.Owners(ctx, tx, record.Activity{AccountID: endpoint.AccountID})
	if err != nil {
		return err
	}
	_, err = record.QueueMails(ctx, tx, recipients, record.Mail{Kind: record.MailWebhookFailing, AccountID: &endpoint.AccountID, ActivityID: &endpoint.ID})
	return err
}

// dropOldest lets the oldest waiting deliveries of an account fail if there are too many.
func dropOldest(ctx context.Context, tx db.Tx, accountID uuid.UUID) error {
	var last time.Time
	err := tx.NewSelect().Model((*Delivery)(nil)).Column("created_at").
		Where("delivery.account_id = ? AND delivery.due_at IS NOT NULL", accountID).
		OrderExpr("delivery.created_at DESC").Offset(maxWaiting).Limit(1).Scan(ctx, &last)
	if err != nil {
		return value.NoRows(err, nil)
	}
	_, err = tx.NewUpdate().Model((*Delivery)(nil)).Set("due_at = NULL, response = ?", "Dropped, because more than 10,000 deliveries of the account waited.").
		Where("account_id = ? AND due_at IS NOT NULL AND created_at <= ?", accountID, last).Exec(ctx)
	return err
}

// Waiting returns the number of deliveries that wait.
func (w *Webhooks) Waiting(ctx context.Context) (int64, error) {
	count, err := w.db.NewSelect().Model((*Delivery)(nil)).Where("delivery.due_at IS NOT NULL").Count(ctx)
	return count, value.Failed("count deliveries", err)
}
