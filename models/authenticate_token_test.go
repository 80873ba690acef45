package models_test

import (
	"context"
	"fmt"
	"testing"

	"portal/models"
	"portal/models/widget"
)

// checkToken checks the key, the account and the agent of a verified token.
func checkToken(ctx context.Context, store *models.Store, claims widget.Claims) error {
	p, err := store.API.AuthenticateToken(ctx, claims)
	if err != nil {
		return err
	}
	if p.AccountID != claims.AccountID || p.KeyID != claims.KeyID {
		return fmt.Errorf("authenticated as %+v", p)
	}
	return store.API.CheckAgent(ctx, p, claims.AgentID)
}

// claimsOf returns the claims that the store checks, for a token of this key and agent.
func claimsOf(c customer, key models.Key, agent models.Agent) widget.Claims {
	return widget.Claims{AccountID: c.ID, KeyID: key.ID, AgentID: agent.ID}
}

func TestTokenIsAcceptedWhileItsKeyAccountAndAgentAreActive(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		key, _ := f.key(t, c)
		otherKey, _ := f.key(t, other)
		agent, otherAgent := f.agent(t, c), f.agent(t, other)
		elsewhere := f.open(t, models.Options{})
		check := func(name string, claims widget.Claims, want error) {
			t.Helper()
			for _, store := range []*models.Store{f.Store, elsewhere, elsewhere} { // the last from memory
				checkError(t, name, checkToken(ctx, store, claims), want)
			}
		}
		check("its own", claimsOf(c, key, agent), nil)
		check("another account's key", claimsOf(c, otherKey, agent), widget.ErrInvalid)
		check("another account's agent", claimsOf(c, key, otherAgent), models.ErrAgentNotFound)
		check("another account", claimsOf(other, otherKey, otherAgent), nil)
		check("no such key", claimsOf(c, models.Key{ID: newID()}, agent), models.ErrKeyRevoked)
		check("no such agent", claimsOf(c, key, models.Agent{ID: newID()}), models.ErrAgentNotFound)
		check("zero key", claimsOf(c, models.Key{}, agent), widget.ErrInvalid)
		check("no ids", widget.Claims{AccountID: c.ID}, widget.ErrInvalid)
		check("nothing", widget.Claims{}, widget.ErrInvalid)

		revoked, _ := f.key(t, c)
		check("before the key's revocation", claimsOf(c, revoked, agent), nil)
		f.revoke(t, revoked)
		check("key revoked", claimsOf(c, revoked, agent), models.ErrKeyRevoked)
		removed := f.agent(t, c)
		check("before the agent's removal", claimsOf(c, key, removed), nil)
		must(t, errOf(f.Agents.Remove(ctx, c.ID, removed.ID, c.actor)))
		check("agent removed", claimsOf(c, key, removed), models.ErrAgentNotFound)
		check("still its own", claimsOf(c, key, agent), nil)
		f.exec(t, "UPDATE accounts SET disabled_at = created_at WHERE id = ?", c.ID)
		check("account disabled", claimsOf(c, key, agent), models.ErrAccountDisabled)
		check("the account beside it", claimsOf(other, otherKey, otherAgent), nil)
		f.exec(t, "UPDATE accounts SET disabled_at = NULL WHERE id = ?", c.ID)
		check("account enabled", claimsOf(c, key, agent), nil)
		f.exec(t, "DELETE FROM api_keys WHERE id = ?", key.ID)
		check("key deleted", claimsOf(c, key, agent), models.ErrKeyRevoked)
	})
}
