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

	Access models.Access `json:"access"`
	restrictions

	Expired bool `json:"expired"`
}

// restrictions are null where a key has none.
type restrictions struct {
	ExpiresAt *time.Time     `json:"expiresAt"`
	Agents    []uuid.UUID    `json:"agents"`
	Networks  []netip.Prefix `json:"networks"`
	Limits    limits         `json:"limits"`
}

func newRestrictions(key models.Key) restrictions {
	return restrictions{ExpiresAt: inUTC(key.ExpiresAt), Agents: key.Agents, Networks: key.Networks, Limits: newLimits(key.Limits)}
}

// NewKey returns the body of a key at a time, which may be that of this process: because the field
// only informs, a small difference to the clock of the database, by which the key is refused, does
// no harm.
func NewKey(key models.Key, now time.Time) Key {
	return Key{
		ID: key.ID, Label: key.Label, MaskedKey: key.Masked(), CreatedAt: key.CreatedAt.UTC(), LastUsedAt: inUTC(key.LastUsedAt), RevokedAt: inUTC(key.RevokedAt),
		Access: key.Access, restrictions: newRestrictions(key), Expired: key.Expired(now),
	}
}

// ownKey is the response of /api/key.
type ownKey struct {
	ID        uuid.UUID `json:"id"`
	Label     string    `json:"label"`
	MaskedKey string    `json:"maskedKey"`
	AccountID uuid.UUID `json:"accountId"`
	CreatedAt time.Time `json:"createdAt"`

	Access models.Access `json:"access"`
	restrictions

	Used usedBody `json:"used"`
}

// usedBody is how much of the limits of a key is used.
type usedBody struct {
	Calls            int64 `json:"calls"`
	MinutesThisMonth int64 `json:"minutesThisMonth"`
}

// showKey returns the key of the caller.
func (cs *customers) showKey(c *gin.Context, caller models.Principal) error {
	var used models.CallsUsed
	key, err := query(cs.site, c, caller.Waited(), func(ctx context.Context) (key models.Key, err error) {
		key, used, err = cs.Store.API.Key(ctx, caller)
		return key, err
	})
	if errors.Is(err, models.ErrKeyNotFound) {
		err = models.ErrKeyUnknown
	}
	return send(c, http.StatusOK, ownKey{
		ID: key.ID, Label: key.Label, MaskedKey: key.Masked(), AccountID: key.AccountID, CreatedAt: key.CreatedAt.UTC(), Access: key.Access, restrictions: newRestrictions(key),
		Used: usedBody{Calls: used.Calls, MinutesThisMonth: used.Minutes()},
	}, err)
}

func inUTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	utc := t.UTC()
	return &utc
}
