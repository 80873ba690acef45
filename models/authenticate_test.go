package models_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"portal/models"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
	"portal/models/widget"
)

func TestAuthentication(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		key, secret := f.key(t, c)
		revokedKey, revokedSecret := f.key(t, c)
		f.revoke(t, revokedKey)
		// The first request reads the database, and later ones may use memory.
		for range 3 {
			p, err := f.API.Authenticate(ctx, secret, models.Source{})
			if err != nil || p.AccountID != c.ID || p.KeyID != key.ID {
				t.Errorf("%+v, %v", p, err)
			}
			// A refusal names the key if there is one.
			for text, want := range map[string]error{
				"":                  value.ErrKeyMissingPrefix,
				secret[:39]:         value.ErrKeyMalformed,
				unknownKey:          value.ErrKeyUnknown,
				revokedSecret:       value.ErrKeyRevoked,
				string(key.KeyHash): value.ErrKeyMissingPrefix,
			} {
				p, err := f.API.Authenticate(ctx, text, models.Source{})
				if !errors.Is(err, want) || errors.Is(err, value.ErrUnavailable) || (p.KeyID == revokedKey.ID) != (text == revokedSecret) || p.KeyID == key.ID {
					t.Errorf("%q: %+v, %v, want %v", text, p, err, want)
				}
			}
		}
	})
}

func TestMissedDeadlineIsUnavailable(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		key, secret := f.key(t, c)
		agent := f.agent(t, c)
		must(t, errOf(f.API.Authenticate(t.Context(), secret, models.Source{})))
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		for name, do := range map[string]func() error{
			"authenticate a key":      func() error { return errOf(f.API.Authenticate(ctx, secret, models.Source{})) },
			"authenticate an unknown": func() error { return errOf(f.API.Authenticate(ctx, unknownKey, models.Source{})) },
			"list keys":               func() error { return errOf(f.Keys.Active(ctx, c.ID)) },
			"find a key":              func() error { return errOf(f.Keys.Find(ctx, c.ID, key.ID)) },
			"find a key by its value": func() error { return errOf(f.Keys.FindBySecret(ctx, secret)) },
			"generate":                func() error { _, _, err := f.Keys.Generate(ctx, c.ID, form("x"), c.actor); return err },
			"revoke":                  func() error { return errOf(f.Keys.Revoke(ctx, c.ID, key.ID, "", c.actor)) },
			"list agents":             func() error { return errOf(f.Agents.List(ctx, c.ID, allAgents)) },
			"find an agent":           func() error { return errOf(f.Agents.Find(ctx, c.ID, agent.ID)) },
			"check an agent":          func() error { return f.API.CheckAgent(ctx, models.Principal{AccountID: c.ID}, agent.ID) },
			"remove an agent":         func() error { return errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.actor)) },
			"create an agent":         func() error { return errOf(f.Agents.Create(ctx, c.ID, models.NewAgent{Name: "x"}, c.actor)) },
			"list activity":           func() error { return errOf(f.Activity.List(ctx, c.ID, record.ActivityPage{Limit: 1})) },
			"verify a password":       func() error { return errOf(f.SignIn.VerifyPassword(ctx, c.user.Email, password, people.Client{})) },
			"create a session":        func() error { return errOf(f.SignIn.Start(ctx, c.user, people.Client{})) },
			"find a session":          func() error { return errOf(f.Sessions.Find(ctx, "x", people.Client{})) },
			"end a session":           func() error { return f.Sessions.End(ctx, c.ID, newID(), c.actor) },
			"find an account":         func() error { return errOf(f.Accounts.FindByEmail(ctx, c.user.Email)) },
			"look for accounts":       func() error { return errOf(f.Accounts.Empty(ctx)) },
			"authenticate a token":    func() error { return checkToken(ctx, f.Store, claimsOf(c, key, agent)) },
			"ping":                    func() error { return f.Ping(ctx) },
			"open":                    func() error { return errOf(models.Open(ctx, f.url, models.Options{})) },
			"create an account":       func() error { return errOf(f.Accounts.Create(ctx, acme("b@example.com"))) },
		} {
			if err := do(); !errors.Is(err, value.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
		}
		// A malformed key needs no database.
		checkError(t, "malformed", errOf(f.API.Authenticate(ctx, secret[:39], models.Source{})), value.ErrKeyMalformed)
		if p, err := f.API.Authenticate(t.Context(), secret, models.Source{}); err != nil || p.KeyID != key.ID {
			t.Errorf("before the deadline: %+v, %v", p, err)
		}
	})
}

// TestBrokenSchemaIsAnError covers a schema that is incomplete, for example during a restore.
func TestBrokenSchemaIsAnError(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		key, secret := f.key(t, c)
		agent := f.agent(t, c)
		use(t, f.Store, secret, 1)
		fails := func(when string) {
			t.Helper()
			for _, key := range []string{secret, unknownKey} {
				if _, err := f.API.Authenticate(ctx, key, models.Source{}); err == nil || errors.Is(err, value.ErrKeyUnknown) || errors.Is(err, value.ErrKeyRevoked) {
					t.Errorf("%s: %v", when, err)
				}
			}
		}
		var epoch []byte
		f.scan(t, "SELECT value FROM auth_epoch", nil, &epoch)
		f.exec(t, "DELETE FROM auth_epoch")
		fails("without an epoch")
		if err := f.API.CheckAgent(ctx, models.Principal{AccountID: c.ID, KeyID: key.ID}, agent.ID); err == nil || errors.Is(err, value.ErrAgentNotFound) {
			t.Errorf("check an agent without an epoch: %v", err)
		}
		f.exec(t, "INSERT INTO auth_epoch (value) VALUES (?)", epoch)
		checkError(t, "with the epoch again", errOf(f.API.Authenticate(ctx, secret, models.Source{})), nil)
		f.exec(t, "ALTER TABLE api_keys RENAME TO api_keys_away")
		f.exec(t, "UPDATE accounts SET disabled_at = ? WHERE id = ?", f.clock.Now(), c.ID)
		fails("without the table of keys")
		f.exec(t, "ALTER TABLE api_keys_away RENAME TO api_keys")
		checkError(t, "account disabled meanwhile", errOf(f.API.Authenticate(ctx, secret, models.Source{})), value.ErrAccountDisabled)
	})
}

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
			// The last one answers from memory.
			for _, store := range []*models.Store{f.Store, elsewhere, elsewhere} {
				checkError(t, name, checkToken(ctx, store, claims), want)
			}
		}
		check("its own", claimsOf(c, key, agent), nil)
		check("another account's key", claimsOf(c, otherKey, agent), widget.ErrInvalid)
		check("another account's agent", claimsOf(c, key, otherAgent), value.ErrAgentNotFound)
		check("another account", claimsOf(other, otherKey, otherAgent), nil)
		check("no such key", claimsOf(c, models.Key{ID: newID()}, agent), value.ErrKeyRevoked)
		check("no such agent", claimsOf(c, key, models.Agent{ID: newID()}), value.ErrAgentNotFound)
		check("zero key", claimsOf(c, models.Key{}, agent), widget.ErrInvalid)
		check("no ids", widget.Claims{AccountID: c.ID}, widget.ErrInvalid)
		check("nothing", widget.Claims{}, widget.ErrInvalid)

		revoked, _ := f.key(t, c)
		check("before the key's revocation", claimsOf(c, revoked, agent), nil)
		f.revoke(t, revoked)
		check("key revoked", claimsOf(c, revoked, agent), value.ErrKeyRevoked)
		removed := f.agent(t, c)
		check("before the agent's removal", claimsOf(c, key, removed), nil)
		must(t, errOf(f.Agents.Remove(ctx, c.ID, removed.ID, c.actor)))
		check("agent removed", claimsOf(c, key, removed), value.ErrAgentNotFound)
		must(t, errOf(f.Agents.Create(ctx, c.ID, models.NewAgent{ID: removed.ID, Name: "Back"}, c.actor)))
		check("agent created again", claimsOf(c, key, removed), nil)
		f.exec(t, "UPDATE agents SET account_id = ? WHERE id = ?", other.ID, removed.ID)
		check("agent moved away", claimsOf(c, key, removed), value.ErrAgentNotFound)
		check("agent moved here", claimsOf(other, otherKey, removed), nil)
		check("still its own", claimsOf(c, key, agent), nil)
		f.exec(t, "UPDATE accounts SET disabled_at = created_at WHERE id = ?", c.ID)
		check("account disabled", claimsOf(c, key, agent), value.ErrAccountDisabled)
		check("the account beside it", claimsOf(other, otherKey, otherAgent), nil)
		f.exec(t, "UPDATE accounts SET disabled_at = NULL WHERE id = ?", c.ID)
		check("account enabled", claimsOf(c, key, agent), nil)
		f.exec(t, "DELETE FROM api_keys WHERE id = ?", key.ID)
		check("key deleted", claimsOf(c, key, agent), value.ErrKeyRevoked)
	})
}
