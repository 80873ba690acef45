package api

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models/calls"
	"portal/models/keys"
	"portal/models/value"
	"portal/models/workload"
)

// Key is an API key in the operator API and in the output of commands.
type Key struct {
	ID         uuid.UUID  `json:"id"`
	Label      string     `json:"label"`
	MaskedKey  *string    `json:"maskedKey"`
	CreatedAt  time.Time  `json:"createdAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"`
	RevokedAt  *time.Time `json:"revokedAt"`

	Access keys.Access `json:"access"`
	proof
	restrictions

	Expired bool `json:"expired"`
}

// proof is how clients prove that they may use a key. It has a masked value or a trust rule.
type proof struct {
	Credential keys.Credential `json:"credential"`
	Trust      *trustBody      `json:"trust"`
}

// trustBody is a trust rule with the claims that the first exchange has pinned.
type trustBody struct {
	workload.Rule

	Pins map[string]string `json:"pins"`
}

func newProof(key keys.Key) (p proof, masked *string) {
	p.Credential = key.Credential
	if !key.IsWorkload() {
		text := key.Masked()
		return p, &text
	}
	p.Trust = &trustBody{Rule: *key.Trust, Pins: key.TrustPins}
	if p.Trust.Pins == nil {
		p.Trust.Pins = map[string]string{}
	}
	return p, nil
}

// restrictions are null where a key has none.
type restrictions struct {
	ExpiresAt *time.Time     `json:"expiresAt"`
	Agents    []uuid.UUID    `json:"agents"`
	Networks  []netip.Prefix `json:"networks"`
	Limits    limits         `json:"limits"`
}

func newRestrictions(key keys.Key) restrictions {
	return restrictions{ExpiresAt: inUTC(key.ExpiresAt), Agents: key.Agents, Networks: key.Networks, Limits: newLimits(key.Limits)}
}

// NewKey returns the body of a key at a time, which may be that of this process: because the field
// only informs, a small difference to the clock of the database, by which the key is refused, does
// no harm.
func NewKey(key keys.Key, now time.Time) Key {
	proof, masked := newProof(key)
	return Key{
		ID: key.ID, Label: key.Label, MaskedKey: masked, CreatedAt: key.CreatedAt.UTC(), LastUsedAt: inUTC(key.LastUsedAt), RevokedAt: inUTC(key.RevokedAt),
		Access: key.Access, proof: proof, restrictions: newRestrictions(key), Expired: key.Expired(now),
	}
}

// ownKey is the response of /api/key.
type ownKey struct {
	ID        uuid.UUID `json:"id"`
	Label     string    `json:"label"`
	MaskedKey *string   `json:"maskedKey"`
	AccountID uuid.UUID `json:"accountId"`
	CreatedAt time.Time `json:"createdAt"`

	Access keys.Access `json:"access"`
	proof
	restrictions

	Used usedBody `json:"used"`
}

// usedBody is how much of the limits of a key is used.
type usedBody struct {
	Calls            int64 `json:"calls"`
	MinutesThisMonth int64 `json:"minutesThisMonth"`
}

// showKey returns the key of the caller.
func (cs *customers) showKey(c *gin.Context, caller keys.Principal) error {
	var used calls.Used
	key, err := query(cs.site, c, caller.Waited(), func(ctx context.Context) (key keys.Key, err error) {
		key, used, err = cs.api.Key(ctx, caller)
		return key, err
	})
	if errors.Is(err, value.ErrKeyNotFound) {
		err = value.ErrKeyUnknown
	}
	if err != nil {
		return err
	}
	proof, masked := newProof(key)
	return send(c, http.StatusOK, ownKey{
		ID: key.ID, Label: key.Label, MaskedKey: masked, AccountID: key.AccountID, CreatedAt: key.CreatedAt.UTC(), Access: key.Access, proof: proof, restrictions: newRestrictions(key),
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
