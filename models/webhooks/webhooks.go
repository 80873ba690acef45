// Package webhooks has the endpoints of accounts and the queue of deliveries to them. It decides
// which addresses they may be sent to, and signs them (Standard Webhooks 1.0).
package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/secret"
	"portal/models/value"
)

// Webhooks are the URLs that get an account's events, and the deliveries to them.
type Webhooks struct {
	db     *db.DB
	sealer secret.Sealer
	guard  *Guard // nil: webhooks are off
}

// New returns the service, which seals the secrets of endpoints. guard may be nil.
func New(db *db.DB, sealer secret.Sealer, guard *Guard) *Webhooks {
	return &Webhooks{db: db, sealer: sealer, guard: guard}
}

// Enabled reports whether accounts can have webhooks.
func (w *Webhooks) Enabled() bool { return w.guard != nil }

// Guard returns what decides about addresses; nil: webhooks are off.
func (w *Webhooks) Guard() *Guard { return w.guard }

// Groups are the groups of events that an endpoint can choose. That of calls needs LiveKit.
func Groups(calls bool) []record.EventGroup {
	if calls {
		return record.EventGroups
	}
	return []record.EventGroup{record.GroupKeys, record.GroupPeople}
}

// Add adds an endpoint, records the activity, and returns the secret, which cannot be read again.
// The error may be an [*value.InvalidError] for the field "url" or "groups".
func (w *Webhooks) Add(ctx context.Context, accountID uuid.UUID, url string, groups []record.EventGroup, actor record.Actor) (e Endpoint, secret string, err error) {
	url = strings.TrimFunc(url, isUnseen) // as it was pasted
	if message := w.guard.CheckURL(url); message != "" {
		return e, "", &value.InvalidError{Field: "url", Message: message}
	}
	e = Endpoint{ID: value.NewID(), AccountID: accountID, URL: url, CreatedAt: w.db.Now()}
	if e.Groups, err = eventGroups(groups); err != nil {
		return Endpoint{}, "", err
	}
	if secret, e.Secret, e.KeyID, err = w.seal(e.ID); err != nil {
		return Endpoint{}, "", err
	}
	err = w.db.InTx(ctx, "add webhook", func(ctx context.Context, tx db.Tx) error {
		if err := tx.LockAccount(ctx, accountID); err != nil {
			return err
		}
		n, err := tx.NewSelect().Model((*Endpoint)(nil)).Where("endpoint.account_id = ? AND endpoint.removed_at IS NULL", accountID).Count(ctx)
		if err != nil {
			return err
		}
		if n >= MaxWebhooks {
			return &value.InvalidError{Field: "url", Message: fmt.Sprintf("This account has %d webhooks, its limit. Remove one to add another.", n)}
		}
		// The endpoint gets only what happens after it was added.
		if err := recordEndpoint(ctx, tx, e, record.ActionWebhookAdded, actor, ""); err != nil {
			return err
		}
		return tx.Insert(ctx, &e)
	})
	if err != nil {
		return Endpoint{}, "", err
	}
	return e, secret, nil
}

// eventGroups returns the chosen groups in the order of the form, or an [*value.InvalidError] if
// none is chosen or one is unknown.
func eventGroups(chosen []record.EventGroup) (groups []record.EventGroup, err error) {
	for _, group := range record.EventGroups {
		if slices.Contains(chosen, group) {
			groups = append(groups, group)
		}
	}
	if len(groups) == 0 || len(groups) < len(chosen) {
		return nil, &value.InvalidError{Field: "groups", Message: "Choose at least one group of events."}
	}
	return groups, nil
}

// List returns the account's endpoints, the oldest first.
func (w *Webhooks) List(ctx context.Context, accountID uuid.UUID) ([]Endpoint, error) {
	endpoints := []Endpoint{}
	err := w.db.NewSelect().Model(&endpoints).Where("endpoint.account_id = ? AND endpoint.removed_at IS NULL", accountID).OrderExpr("endpoint.id").Scan(ctx)
	return endpoints, value.Failed("list webhooks", err)
}

// Find returns one of the account's endpoints, or [value.ErrWebhookNotFound].
func (w *Webhooks) Find(ctx context.Context, accountID, id uuid.UUID) (e Endpoint, err error) {
	err = w.db.NewSelect().Model(&e).Where("endpoint.account_id = ? AND endpoint.id = ? AND endpoint.removed_at IS NULL", accountID, id).Scan(ctx)
	return e, value.NotFound("find webhook", err, value.ErrWebhookNotFound)
}

// Readable reports whether the secret of an endpoint can be decrypted. Otherwise nothing can be
// sent until it is rotated.
func (w *Webhooks) Readable(e Endpoint) bool {
	_, err := w.sealer.Open(e.Secret, e.KeyID, e.ID[:])
	return err == nil
}

// Deliveries returns the last deliveries to one of the account's endpoints, the newest first.
func (w *Webhooks) Deliveries(ctx context.Context, accountID, id uuid.UUID) ([]Delivery, error) {
	deliveries := []Delivery{}
	err := w.db.NewSelect().Model(&deliveries).Where("delivery.endpoint_id = ? AND delivery.account_id = ?", id, accountID).
		OrderExpr("delivery.created_at DESC").Limit(DeliveriesListed).Scan(ctx)
	return deliveries, value.Failed("list deliveries", err)
}

// Rotate gives an endpoint a new secret, which it returns, and records the activity. For 24 hours
// the old secret signs too. The error may be [value.ErrWebhookNotFound].
func (w *Webhooks) Rotate(ctx context.Context, accountID, id uuid.UUID, actor record.Actor) (e Endpoint, secret string, err error) {
	err = w.change(ctx, "rotate the secret of a webhook", accountID, id, func(ctx context.Context, tx db.Tx, found Endpoint) (err error) {
		e = found
		e.Previous, e.PreviousKeyID, e.PreviousUntil = e.Secret, e.KeyID, new(tx.Now().Add(previousSecretKept))
		if secret, e.Secret, e.KeyID, err = w.seal(id); err != nil {
			return err
		}
		if err := tx.Update(ctx, &e, "secret", "key_id", "previous", "previous_key_id", "previous_until"); err != nil {
			return err
		}
		return recordEndpoint(ctx, tx, e, record.ActionWebhookRotated, actor, "")
	})
	if err != nil {
		return Endpoint{}, "", err
	}
	return e, secret, nil
}

// SetGroups changes which events an endpoint gets from now on, and records the activity. If they
// are the same, nothing happens. The error may be [value.ErrWebhookNotFound], or an
// [*value.InvalidError] for the field "groups".
func (w *Webhooks) SetGroups(ctx context.Context, accountID, id uuid.UUID, chosen []record.EventGroup, actor record.Actor) error {
	groups, err := eventGroups(chosen)
	if err != nil {
		return err
	}
	return w.change(ctx, "change the events of a webhook", accountID, id, func(ctx context.Context, tx db.Tx, e Endpoint) error {
		if slices.Equal(e.Groups, groups) {
			return nil
		}
		e.Groups = groups
		if err := tx.Update(ctx, &e, "event_groups"); err != nil {
			return err
		}
		return recordEndpoint(ctx, tx, e, record.ActionWebhookChanged, actor, "")
	})
}

// Disable stops deliveries to an endpoint, lets those that wait fail, and records the activity. If
// it is disabled already, nothing happens. The error may be [value.ErrWebhookNotFound].
func (w *Webhooks) Disable(ctx context.Context, accountID, id uuid.UUID, actor record.Actor) error {
	return w.change(ctx, "disable webhook", accountID, id, func(ctx context.Context, tx db.Tx, e Endpoint) error {
		if e.DisabledAt != nil {
			return nil
		}
		return Disable(ctx, tx, e, actor, "")
	})
}

// Disable stops deliveries to an endpoint and records the reason.
func Disable(ctx context.Context, tx db.Tx, e Endpoint, actor record.Actor, reason string) error {
	e.DisabledAt = new(tx.Now())
	if err := tx.Update(ctx, &e, "disabled_at"); err != nil {
		return err
	}
	if err := failWaiting(ctx, tx, e); err != nil {
		return err
	}
	return recordEndpoint(ctx, tx, e, record.ActionWebhookDisabled, actor, reason)
}

// failWaiting lets the deliveries that wait for an endpoint fail.
func failWaiting(ctx context.Context, tx db.Tx, e Endpoint) error {
	_, err := tx.NewUpdate().Model((*Delivery)(nil)).Set("due_at = NULL, response = CASE WHEN attempts = 0 THEN ? ELSE response END", "The endpoint was disabled.").
		Where("endpoint_id = ? AND due_at IS NOT NULL", e.ID).Exec(ctx)
	return err
}

// Enable lets an endpoint get events again, those from now on, and records the activity. If it is
// enabled already, nothing happens. The error may be [value.ErrWebhookNotFound].
func (w *Webhooks) Enable(ctx context.Context, accountID, id uuid.UUID, actor record.Actor) error {
	return w.change(ctx, "enable webhook", accountID, id, func(ctx context.Context, tx db.Tx, e Endpoint) error {
		if e.DisabledAt == nil {
			return nil
		}
		// The endpoint gets only what happens after it was enabled.
		if err := recordEndpoint(ctx, tx, e, record.ActionWebhookEnabled, actor, ""); err != nil {
			return err
		}
		e.DisabledAt, e.FailingSince, e.Failures, e.FailureMailedAt = nil, nil, 0, nil
		return tx.Update(ctx, &e, "disabled_at", "failing_since", "failures", "failure_mailed_at")
	})
}

// Remove removes an endpoint, deletes its secrets, and records the activity. The purge deletes its
// deliveries: a revocation must not wait until one transaction has deleted a month of them. The
// error may be [value.ErrWebhookNotFound].
func (w *Webhooks) Remove(ctx context.Context, accountID, id uuid.UUID, actor record.Actor) error {
	return w.change(ctx, "remove webhook", accountID, id, func(ctx context.Context, tx db.Tx, e Endpoint) error {
		now := tx.Now()
		e.RemovedAt, e.DisabledAt = &now, &now
		e.Secret, e.KeyID, e.Previous, e.PreviousKeyID = []byte{}, make([]byte, len(e.KeyID)), nil, nil
		if err := tx.Update(ctx, &e, "removed_at", "disabled_at", "secret", "key_id", "previous", "previous_key_id"); err != nil {
			return err
		}
		if err := failWaiting(ctx, tx, e); err != nil {
			return err
		}
		return recordEndpoint(ctx, tx, e, record.ActionWebhookRemoved, actor, "")
	})
}

// Test queues a test event for an endpoint, with one attempt. If it is disabled, nothing happens.
// The error may be [value.ErrWebhookNotFound].
func (w *Webhooks) Test(ctx context.Context, accountID, id uuid.UUID) error {
	return w.change(ctx, "test webhook", accountID, id, func(ctx context.Context, tx db.Tx, e Endpoint) error {
		if e.DisabledAt != nil {
			return nil
		}
		now := tx.Now()
		return tx.Insert(ctx, &Delivery{EndpointID: id, EventID: value.NewID(), Event: record.EventTest, AccountID: accountID, CreatedAt: now, DueAt: &now, Final: true})
	})
}

// Resend queues a delivery again, with one attempt. If it waits already or the endpoint is
// disabled, nothing happens. The error may be [value.ErrWebhookNotFound].
func (w *Webhooks) Resend(ctx context.Context, accountID, id, eventID uuid.UUID, event string) error {
	return w.change(ctx, "resend a delivery", accountID, id, func(ctx context.Context, tx db.Tx, e Endpoint) error {
		if e.DisabledAt != nil {
			return nil
		}
		_, err := tx.NewUpdate().Model((*Delivery)(nil)).Set("due_at = ?, final = ?, delivered_at = NULL", tx.Now(), true).
			Where("endpoint_id = ? AND event_id = ? AND event = ? AND due_at IS NULL", id, eventID, event).Exec(ctx)
		return err
	})
}

// change calls do with one of the account's endpoints, whose row is locked.
func (w *Webhooks) change(ctx context.Context, operation string, accountID, id uuid.UUID, do func(context.Context, db.Tx, Endpoint) error) error {
	return w.db.InTx(ctx, operation, func(ctx context.Context, tx db.Tx) error {
		if err := tx.LockAccountsTable(ctx, accountID); err != nil {
			return err
		}
		e, err := lockEndpoint(ctx, tx, accountID, id)
		if err != nil {
			return value.NoRows(err, value.ErrWebhookNotFound)
		}
		return do(ctx, tx, e)
	})
}

// lockEndpoint returns one of the account's endpoints and locks its row.
func lockEndpoint(ctx context.Context, tx db.Tx, accountID, id uuid.UUID) (e Endpoint, err error) {
	query := tx.NewSelect().Model(&e).Where("endpoint.account_id = ? AND endpoint.id = ? AND endpoint.removed_at IS NULL", accountID, id)
	return e, tx.DB.Locked(query, "NO KEY UPDATE").Scan(ctx)
}

// recordEndpoint records what was done to an endpoint.
func recordEndpoint(ctx context.Context, tx db.Tx, e Endpoint, action record.Action, actor record.Actor, detail string) error {
	return record.Add(ctx, tx, actor, record.Activity{AccountID: e.AccountID, Action: action, SubjectID: &e.ID, Label: e.URL, Detail: detail})
}

// Reseal encrypts the secrets of a previous key with the current one.
func (w *Webhooks) Reseal(ctx context.Context) error {
	previous := w.sealer.PreviousIDs()
	if len(previous) == 0 {
		return nil
	}
	var endpoints []Endpoint
	err := w.db.NewSelect().Model(&endpoints).Where("endpoint.key_id IN (?0) OR endpoint.previous_key_id IN (?0)", bun.List(previous)).
		Limit(value.MaintenanceBatch).Scan(ctx)
	if err != nil {
		return value.Failed("find webhooks of a previous secret", err)
	}
	for _, e := range endpoints {
		err := w.db.InTx(ctx, "encrypt a webhook with the current secret", func(ctx context.Context, tx db.Tx) error {
			e, err := lockEndpoint(ctx, tx, e.AccountID, e.ID)
			if err != nil {
				return value.NoRows(err, nil)
			}
			if err := errors.Join(w.resealOne(e.ID, &e.Secret, &e.KeyID), w.resealOne(e.ID, &e.Previous, &e.PreviousKeyID)); err != nil {
				return err
			}
			return tx.Update(ctx, &e, "secret", "key_id", "previous", "previous_key_id")
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// resealOne encrypts a secret, if there is one, with the current key. One that cannot be read
// stays.
func (w *Webhooks) resealOne(id uuid.UUID, sealed, keyID *[]byte) error {
	if *sealed == nil {
		return nil
	}
	secret, err := w.sealer.Open(*sealed, *keyID, id[:])
	if err != nil {
		return nil //nolint:nilerr // the page says that the secret must be rotated
	}
	*sealed, *keyID, err = w.sealer.Seal(secret, id[:])
	return err
}

// seal returns a new secret as the receiver gets it, sealed, and the id of the key that sealed it.
func (w *Webhooks) seal(id uuid.UUID) (text string, sealed, keyID []byte, err error) {
	secret := NewSecret()
	sealed, keyID, err = w.sealer.Seal(secret, id[:])
	return SecretText(secret), sealed, keyID, err
}
