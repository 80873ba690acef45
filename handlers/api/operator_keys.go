package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
)

type keysBody struct {
	Keys []Key     `json:"keys"`
	Next uuid.UUID `json:"next,omitzero"`
}

// listKeys returns a page of an account's keys, revoked ones too.
func (o *operators) listKeys(c *gin.Context) error {
	body := func(key models.Key) Key { return NewKey(key, o.Now()) }
	keys, err := listOf(o, c, o.Store.Keys.All)
	return send(c, http.StatusOK, keysBody{bodiesOf(keys.Items, body), keys.Next}, err)
}

type revocationBody struct {
	KeyID     uuid.UUID  `json:"keyId"`
	AccountID uuid.UUID  `json:"accountId"`
	RevokedAt *time.Time `json:"revokedAt"`
}

// revokeKey revokes a key of any account, given by its value or its id.
func (o *operators) revokeKey(c *gin.Context) error {
	const example = `{"key": "nas_..."} or {"keyId": "<uuid>"}`
	body := readObject(c, example)
	if body.has("key") == body.has("keyId") {
		body.refuse("The request body must have either key or keyId. Send " + example + ".")
	}
	var secret, reason string
	var id uuid.UUID
	if body.has("key") {
		secret = body.text("key")
	} else {
		id = body.id("keyId")
	}
	if body.fields["reason"] != nil {
		reason = body.text("reason")
	}
	if body.err != nil {
		return body.err
	}
	key, err := query(o.site, c, 0, func(ctx context.Context) (key models.Key, err error) {
		if body.has("key") {
			key, err = o.Store.Keys.FindBySecret(ctx, secret)
		} else {
			key, err = o.Store.Keys.FindAsOperator(ctx, id)
		}
		if err != nil {
			return key, err
		}
		return o.Store.Keys.Revoke(ctx, key.AccountID, key.ID, reason, models.Operator())
	})
	endedAt := key.RevokedAt
	if errors.Is(err, models.ErrKeyAlreadyRevoked) {
		err = nil
		if endedAt == nil {
			endedAt = key.ExpiresAt
		}
	}
	return send(c, http.StatusOK, revocationBody{KeyID: key.ID, AccountID: key.AccountID, RevokedAt: inUTC(endedAt)}, err)
}
