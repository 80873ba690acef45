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

// NewKey returns the body of a key at a time, which may be that of this process: because the field
// only informs, a small difference to the clock of the database, by which the key is refused, does
// no harm.
func NewKey(key models.Key, now time.Time) Key {
	return Key{
		key.ID, key.Label, key.Masked(), key.CreatedAt.UTC(), inUTC(key.LastUsedAt), inUTC(key.RevokedAt),
		newRestrictions(key), key.Expired(now),
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
func (cs *customers) showKey(c *gin.Context, caller models.Principal) error {
	key, err := query(cs.site, c, caller.Waited(), func(ctx context.Context) (models.Key, error) {
		return cs.Store.API.Key(ctx, caller)
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
