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

	"portal/models/keys"
	"portal/models/record"
	"portal/models/value"
	"portal/models/workload"
)

type keysBody struct {
	Keys []Key     `json:"keys"`
	Next uuid.UUID `json:"next,omitzero"`
}

// listKeys returns a page of an account's keys, revoked ones too.
func (o *operators) listKeys(c *gin.Context) error {
	body := func(key keys.Key) Key { return NewKey(key, o.now()) }
	keys, err := listOf(o, c, o.keys.All)
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
		key, created, err = o.workload.Put(ctx, account, id, put, record.Operator())
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
			if networks, err = value.ParseNetworks(texts); err != nil || networks == nil {
				o.refuse("The field networks is neither null nor a list of 1 to 20 addresses and networks.")
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
			key, err = o.keys.FindBySecret(ctx, secret)
		} else {
			key, err = o.keys.FindAsOperator(ctx, id)
		}
		if err != nil {
			return key, err
		}
		return o.keys.Revoke(ctx, key.AccountID, key.ID, reason, record.Operator())
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
