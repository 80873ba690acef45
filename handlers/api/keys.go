package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/calls"
	"portal/models/keys"
	"portal/models/record"
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
		return p, new(key.Masked())
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
	return new(t.UTC())
}

type keysBody struct {
	Keys []Key     `json:"keys"`
	Next uuid.UUID `json:"next,omitzero"`
}

// listKeys returns a page of an account's keys, revoked ones too.
func (o *operators) listKeys(c *gin.Context) error {
	body := func(key keys.Key) Key { return NewKey(key, o.now()) }
	keys, err := listOf(o, c, o.store.Keys.All)
	return send(c, http.StatusOK, keysBody{bodiesOf(keys.Items, body), keys.Next}, err)
}

// putKey creates or changes a key without a secret.
func (o *operators) putKey(c *gin.Context) error {
	account, id, err := accountAnd(c, "key")
	if err != nil {
		return err
	}
	body := readObject(c, `{"label": "deploy", "trust": {"provider": "github", "issuer": "...", "audience": "...", "claims": {"repository": ["acme/site"]}}}`)
	put := keys.PutKey{Label: body.text("label"), Trust: body.trust(o.baseURL.String()), Restrict: body.restrict()}
	if body.err != nil {
		return body.err
	}
	var created bool
	key, err := query(o.site, c, 0, func(ctx context.Context) (key keys.Key, err error) {
		key, created, err = o.store.Workload.Put(ctx, account, id, put, record.Operator())
		return key, err
	})
	if err != nil {
		return err
	}
	return send(c, putStatus(created), NewKey(key, o.now()), nil)
}

// trustFields are the names in a trust rule. The pins are read-only.
var trustFields = []string{"provider", "issuer", "audience", "claims", "jwks"}

// trust returns the field trust. Without an audience, the rule has that of this portal.
func (o *object) trust(audience string) (rule workload.Rule) {
	fields := o.optional("trust")
	if fields == nil {
		o.refuse("The field trust is missing or null. Send " + o.example + ".")
		return rule
	}
	// Package json would also take a name in another case for one of a rule.
	maps.DeleteFunc(fields, func(name string, _ any) bool { return !slices.Contains(trustFields, name) })
	text, err := json.Marshal(fields)
	if err == nil {
		err = json.Unmarshal(text, &rule)
	}
	if err != nil {
		o.refuse("The field trust is not a trust rule: provider, issuer and audience are strings, claims an object of lists of strings, and jwks an object.")
	}
	if bytes.Equal(rule.JWKS, []byte("null")) {
		rule.JWKS = nil
	}
	rule.Audience = cmp.Or(rule.Audience, audience)
	return rule
}

// restrict returns the change that the fields of restrictions describe. A missing field changes
// nothing, and null removes the restriction.
func (o *object) restrict() func(*keys.Restrictions) {
	var changes []func(*keys.Restrictions)
	if o.has("expiresAt") {
		var expiry *time.Time
		if o.fields["expiresAt"] != nil {
			at, err := parseTime(o.text("expiresAt"))
			if err != nil {
				o.refuse("The field expiresAt is neither null nor a time such as 2027-01-31T00:00:00Z.")
			}
			expiry = &at
		}
		changes = append(changes, func(r *keys.Restrictions) { r.ExpiresAt = expiry })
	}
	if o.has("agents") {
		agents := o.agents()
		changes = append(changes, func(r *keys.Restrictions) { r.Agents = agents })
	}
	if o.has("networks") {
		var networks []netip.Prefix
		if texts := o.texts("networks"); o.fields["networks"] != nil {
			var err error
			if networks, err = value.ParseNetworks(texts); err != nil {
				o.refuse(problem.From(err).Message)
			}
		}
		changes = append(changes, func(r *keys.Restrictions) { r.Networks = networks })
	}
	if limits := o.limits(); limits != nil {
		changes = append(changes, func(r *keys.Restrictions) { r.Limits = *limits })
	}
	return func(r *keys.Restrictions) {
		for _, change := range changes {
			change(r)
		}
	}
}

// agents returns the field agents, or nil if it is null.
func (o *object) agents() []uuid.UUID {
	texts := o.texts("agents")
	if o.fields["agents"] == nil {
		return nil
	}
	agents := make([]uuid.UUID, len(texts))
	for i, text := range texts {
		var ok bool
		if agents[i], ok = value.ParseID(text); !ok {
			o.refuse("The field agents has a text that is not a UUID of 36 characters.")
		}
	}
	return agents
}

// texts returns a field that must be a list of strings, or nil if it is null.
func (o *object) texts(name string) (texts []string) {
	list, ok := o.fields[name].([]any)
	if !ok && o.fields[name] != nil {
		o.refuse("The field " + name + " is neither null nor a list.")
	}
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			o.refuse("The field " + name + " is not a list of strings.")
		}
		texts = append(texts, text)
	}
	return texts
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
	key, err := query(o.site, c, 0, func(ctx context.Context) (key keys.Key, err error) {
		if body.has("key") {
			key, err = o.store.Keys.FindBySecret(ctx, secret)
		} else {
			key, err = o.store.Keys.FindAsOperator(ctx, id)
		}
		if err != nil {
			return key, err
		}
		return o.store.Keys.Revoke(ctx, key.AccountID, key.ID, reason, record.Operator())
	})
	endedAt := key.RevokedAt
	if errors.Is(err, value.ErrKeyAlreadyRevoked) {
		err = nil
		if endedAt == nil {
			endedAt = key.ExpiresAt
		}
	}
	return send(c, http.StatusOK, revocationBody{KeyID: key.ID, AccountID: key.AccountID, RevokedAt: inUTC(endedAt)}, err)
}
