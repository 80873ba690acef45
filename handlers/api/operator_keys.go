package api

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
)

// Key is an API key in the operator API and in the output of commands.
type Key struct {
	ID         uuid.UUID  `json:"id"`
	Label      string     `json:"label"`
	MaskedKey  string     `json:"maskedKey"`
	CreatedAt  time.Time  `json:"createdAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"`
	RevokedAt  *time.Time `json:"revokedAt"`

	restrictions

	Expired bool `json:"expired"`
}

// restrictions are null where a key has none.
type restrictions struct {
	ExpiresAt *time.Time     `json:"expiresAt"`
	Agents    []uuid.UUID    `json:"agents"`
	Networks  []netip.Prefix `json:"networks"`
}

func newRestrictions(key models.Key) restrictions {
	return restrictions{inUTC(key.ExpiresAt), key.Agents, key.Networks}
}

// NewKey returns the body of a key. It compares the expiry with the clock of this process. Because
// the field only informs, a small difference to the clock of the database, by which the key is
// refused, does no harm.
func NewKey(key models.Key) Key {
	return Key{
		key.ID, key.Label, key.Masked(), key.CreatedAt.UTC(), inUTC(key.LastUsedAt), inUTC(key.RevokedAt),
		newRestrictions(key), key.Expired(time.Now()),
	}
}

// ownKey is the response of /api/key.
type ownKey struct {
	ID        uuid.UUID `json:"id"`
	Label     string    `json:"label"`
	MaskedKey string    `json:"maskedKey"`
	AccountID uuid.UUID `json:"accountId"`
	CreatedAt time.Time `json:"createdAt"`

	restrictions
}

// showKey returns the key of the caller.
func (a *API) showKey(c *gin.Context, caller models.Principal) error {
	key, err := query(a, c, caller.Waited(), func(ctx context.Context) (models.Key, error) {
		return a.store.API.Key(ctx, caller)
	})
	if errors.Is(err, models.ErrKeyNotFound) {
		err = models.ErrKeyUnknown
	}
	return send(c, http.StatusOK, ownKey{
		key.ID, key.Label, key.Masked(), key.AccountID, key.CreatedAt.UTC(), newRestrictions(key),
	}, err)
}

func inUTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	utc := t.UTC()
	return &utc
}

type keysBody struct {
	Keys []Key     `json:"keys"`
	Next uuid.UUID `json:"next,omitzero"`
}

// listKeys returns a page of an account's keys, revoked ones too.
func (a *API) listKeys(c *gin.Context) error {
	keys, err := listOf(a, c, a.store.Keys.All)
	return send(c, http.StatusOK, keysBody{bodiesOf(keys.Items, NewKey), keys.Next}, err)
}

type revocationBody struct {
	KeyID     uuid.UUID  `json:"keyId"`
	AccountID uuid.UUID  `json:"accountId"`
	RevokedAt *time.Time `json:"revokedAt"`
}

// revokeKey revokes a key of any account, given by its value or its id.
func (a *API) revokeKey(c *gin.Context) error {
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
	key, err := query(a, c, 0, func(ctx context.Context) (key models.Key, err error) {
		if body.has("key") {
			key, err = a.store.Keys.FindBySecret(ctx, secret)
		} else {
			key, err = a.store.Keys.FindAsOperator(ctx, id)
		}
		if err != nil {
			return key, err
		}
		return a.store.Keys.Revoke(ctx, key.AccountID, key.ID, reason, models.Operator())
	})
	endedAt := key.RevokedAt
	if errors.Is(err, models.ErrKeyAlreadyRevoked) {
		err = nil
		if endedAt == nil {
			endedAt = key.ExpiresAt
		}
	}
	return send(c, http.StatusOK, revocationBody{key.ID, key.AccountID, inUTC(endedAt)}, err)
}
