package erasure

import (
	"context"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/keys"
	"portal/models/record"
	"portal/models/value"
	"portal/models/webhooks"
)

// What outsiders have sent can have a person's email and address too: the reasons of exchanges, the
// URLs of webhooks and the responses of their receivers.

// replaceReasons replaces the emails in the reasons of refused exchanges of the account's keys.
func (e *Erasures) replaceReasons(ctx context.Context, accountID uuid.UUID, emails emailsInText) error {
	return eachPage(ctx, e.db, accountID, func(ofAccount []keys.Key) error {
		for batch := range slices.Chunk(value.IDs(ofAccount), value.WriteBatch) {
			err := e.db.InTx(ctx, "erase a user from exchanges", func(ctx context.Context, tx db.Tx) error {
				var found []keys.Exchange
				err := tx.NewSelect().Model(&found).Where("api_key_id IN (?) AND reason <> ''", bun.List(batch)).Scan(ctx)
				for i := 0; err == nil && i < len(found); i++ {
					if emails.replaceIn(e.db, &found[i]) {
						err = tx.Update(ctx, &found[i], searchedIn(e.db, reflect.TypeOf(found[i]))...)
					}
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// eraseFromWebhooks replaces the emails in the URLs and responses of the account's webhooks, and
// empties the responses to events about the user. An endpoint whose URL changes is disabled,
// because nobody has chosen the new URL.
func (e *Erasures) eraseFromWebhooks(ctx context.Context, row erasure, emails emailsInText) error {
	var endpoints []webhooks.Endpoint
	if err := e.db.NewSelect().Model(&endpoints).Where("account_id = ?", row.AccountID).OrderExpr("id").Scan(ctx); err != nil {
		return err
	}
	for _, endpoint := range endpoints {
		if err := e.replaceURL(ctx, endpoint, emails); err != nil {
			return err
		}
		if err := e.eraseResponses(ctx, endpoint.ID, row, emails); err != nil {
			return err
		}
	}
	return nil
}

func (e *Erasures) replaceURL(ctx context.Context, endpoint webhooks.Endpoint, emails emailsInText) error {
	if !emails.replaceIn(e.db, &endpoint) {
		return nil
	}
	endpoint.URL = strings.ReplaceAll(endpoint.URL, ErasedName, url.PathEscape(ErasedName))
	return e.db.InTx(ctx, "erase a user from a webhook", func(ctx context.Context, tx db.Tx) error {
		if err := tx.LockAccountsTable(ctx, endpoint.AccountID); err != nil {
			return err
		}
		if err := tx.Update(ctx, &endpoint, "url"); err != nil || endpoint.DisabledAt != nil {
			return err
		}
		return webhooks.Disable(ctx, tx, endpoint, record.System, "Its URL had the email of a user whose data were erased.")
	})
}

// response is a delivery with a response.
type response struct {
	webhooks.Delivery `bun:",extend"`

	Own bool `bun:",scanonly"` // the event is an activity by or about the user
}

// eraseResponses reads the deliveries of an endpoint in pages, because there can be very many.
func (e *Erasures) eraseResponses(ctx context.Context, endpointID uuid.UUID, row erasure, emails emailsInText) error {
	last := webhooks.Delivery{EndpointID: endpointID}
	for {
		page, err := e.responses(ctx, last, row.ID)
		if err != nil || len(page) == 0 {
			return err
		}
		last = page[len(page)-1].Delivery
		var changed []webhooks.Delivery
		for _, one := range page {
			before := one.Response
			if emails.replaceIn(e.db, &one.Delivery); one.Own {
				one.Response = ""
			}
			if one.Response != before {
				changed = append(changed, one.Delivery)
			}
		}
		for batch := range slices.Chunk(changed, value.WriteBatch) {
			if err := e.writeResponses(ctx, batch); err != nil {
				return err
			}
		}
	}
}

// responses returns a page of the deliveries after last, of the same endpoint.
func (e *Erasures) responses(ctx context.Context, last webhooks.Delivery, userID uuid.UUID) (page []response, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.db.Timeout)
	defer cancel()
	err = e.db.NewSelect().Model(&page).Column("delivery.endpoint_id", "delivery.event_id", "delivery.event", "delivery.response").
		ColumnExpr("activity.id IS NOT NULL AS own").
		Join("LEFT JOIN activities AS activity ON activity.id = delivery.event_id AND (activity.actor_id = ?0 OR activity.subject_id = ?0)", userID).
		Where("delivery.endpoint_id = ? AND (delivery.event_id, delivery.event) > (?, ?)", last.EndpointID, last.EventID, last.Event).
		OrderExpr("delivery.event_id, delivery.event").Limit(value.MaintenanceBatch).Scan(ctx)
	return page, err
}

func (e *Erasures) writeResponses(ctx context.Context, changed []webhooks.Delivery) error {
	return e.db.InTx(ctx, "erase a user from responses", func(ctx context.Context, tx db.Tx) error {
		for i := range changed {
			if err := tx.Update(ctx, &changed[i], "response"); err != nil {
				return err
			}
		}
		return nil
	})
}
