package keys_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"portal/models"
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
	"portal/models/widget"
)

func TestAuthentication(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		key, secret := f.Key(t, c)
		revokedKey, revokedSecret := f.Key(t, c)
		f.Revoke(t, revokedKey)
		// The first request reads the database, and later ones may use memory.
		for range 3 {
			p, err := f.API.Authenticate(ctx, secret, keys.Source{})
			if err != nil || p.AccountID != c.ID || p.KeyID != key.ID {
				t.Errorf("%+v, %v", p, err)
			}
			// A refusal names the key if there is one.
			for text, want := range map[string]error{
				"":                    value.ErrKeyMissingPrefix,
				secret[:39]:           value.ErrKeyMalformed,
				modelstest.UnknownKey: value.ErrKeyUnknown,
				revokedSecret:         value.ErrKeyRevoked,
				string(key.KeyHash):   value.ErrKeyMissingPrefix,
			} {
				p, err := f.API.Authenticate(ctx, text, keys.Source{})
				if !errors.Is(err, want) || errors.Is(err, value.ErrUnavailable) || (p.KeyID == revokedKey.ID) != (text == revokedSecret) || p.KeyID == key.ID {
					t.Errorf("%q: %+v, %v, want %v", text, p, err, want)
				}
			}
		}
	})
}

func TestMissedDeadlineIsUnavailable(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		key, secret := f.Key(t, c)
		agent := f.Agent(t, c)
		must(t, errOf(f.API.Authenticate(t.Context(), secret, keys.Source{})))
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		for name, do := range map[string]func() error{
			"authenticate a key":      func() error { return errOf(f.API.Authenticate(ctx, secret, keys.Source{})) },
			"authenticate an unknown": func() error { return errOf(f.API.Authenticate(ctx, modelstest.UnknownKey, keys.Source{})) },
			"list keys":               func() error { return errOf(f.Keys.Active(ctx, c.ID)) },
			"find a key":              func() error { return errOf(f.Keys.Find(ctx, c.ID, key.ID)) },
			"find a key by its value": func() error { return errOf(f.Keys.FindBySecret(ctx, secret)) },
			"generate":                func() error { _, _, err := f.Keys.Generate(ctx, c.ID, form("x"), c.Actor); return err },
			"revoke":                  func() error { return errOf(f.Keys.Revoke(ctx, c.ID, key.ID, "", c.Actor)) },
			"list agents":             func() error { return errOf(f.Agents.List(ctx, c.ID, modelstest.AllAgents)) },
			"find an agent":           func() error { return errOf(f.Agents.Find(ctx, c.ID, agent.ID)) },
			"check an agent":          func() error { return f.API.CheckAgent(ctx, keys.Principal{AccountID: c.ID}, agent.ID) },
			"remove an agent":         func() error { return errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.Actor)) },
			"create an agent":         func() error { return errOf(f.Agents.Create(ctx, c.ID, agents.NewAgent{Name: "x"}, c.Actor)) },
			"list activity":           func() error { return errOf(f.Activity.List(ctx, c.ID, record.ActivityPage{Limit: 1})) },
			"verify a password":       func() error { return errOf(f.SignIn.VerifyPassword(ctx, c.User.Email, password, people.Client{})) },
			"create a session":        func() error { return errOf(f.SignIn.Start(ctx, c.User, people.Client{})) },
			"find a session":          func() error { return errOf(f.Sessions.Find(ctx, "x", people.Client{})) },
			"end a session":           func() error { return f.Sessions.End(ctx, c.ID, newID(), c.Actor) },
			"find an account":         func() error { return errOf(f.Accounts.FindByEmail(ctx, c.User.Email)) },
			"look for accounts":       func() error { return errOf(f.Accounts.Empty(ctx)) },
			"authenticate a token":    func() error { return modelstest.CheckToken(ctx, f.Store, modelstest.ClaimsOf(c, key, agent)) },
			"ping":                    func() error { return f.SignIn.Ready(ctx) },
			"open":                    func() error { return errOf(models.Open(ctx, f.URL, models.Options{})) },
			"create an account":       func() error { return errOf(f.Accounts.Create(ctx, modelstest.Acme("b@example.com"))) },
		} {
			if err := do(); !errors.Is(err, value.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
		}
		// A malformed key needs no database.
		checkError(t, "malformed", errOf(f.API.Authenticate(ctx, secret[:39], keys.Source{})), value.ErrKeyMalformed)
		if p, err := f.API.Authenticate(t.Context(), secret, keys.Source{}); err != nil || p.KeyID != key.ID {
			t.Errorf("before the deadline: %+v, %v", p, err)
		}
	})
}

// TestBrokenSchemaIsAnError covers a schema that is incomplete, for example during a restore.
func TestBrokenSchemaIsAnError(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		key, secret := f.Key(t, c)
		agent := f.Agent(t, c)
		modelstest.Use(t, f.Store, secret, 1)
		fails := func(when string) {
			t.Helper()
			for _, key := range []string{secret, modelstest.UnknownKey} {
				if _, err := f.API.Authenticate(ctx, key, keys.Source{}); err == nil || errors.Is(err, value.ErrKeyUnknown) || errors.Is(err, value.ErrKeyRevoked) {
					t.Errorf("%s: %v", when, err)
				}
			}
		}
		var epoch []byte
		f.Scan(t, "SELECT value FROM auth_epoch", nil, &epoch)
		f.Exec(t, "DELETE FROM auth_epoch")
		fails("without an epoch")
		if err := f.API.CheckAgent(ctx, keys.Principal{AccountID: c.ID, KeyID: key.ID}, agent.ID); err == nil || errors.Is(err, value.ErrAgentNotFound) {
			t.Errorf("check an agent without an epoch: %v", err)
		}
		f.Exec(t, "INSERT INTO auth_epoch (value) VALUES (?)", epoch)
		checkError(t, "with the epoch again", errOf(f.API.Authenticate(ctx, secret, keys.Source{})), nil)
		f.Exec(t, "ALTER TABLE api_keys RENAME TO api_keys_away")
		f.Exec(t, "UPDATE accounts SET disabled_at = ? WHERE id = ?", f.Clock.Now(), c.ID)
		fails("without the table of keys")
		f.Exec(t, "ALTER TABLE api_keys_away RENAME TO api_keys")
		checkError(t, "account disabled meanwhile", errOf(f.API.Authenticate(ctx, secret, keys.Source{})), value.ErrAccountDisabled)
	})
}

func TestTokenIsAcceptedWhileItsKeyAccountAndAgentAreActive(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		key, _ := f.Key(t, c)
		otherKey, _ := f.Key(t, other)
		agent, otherAgent := f.Agent(t, c), f.Agent(t, other)
		elsewhere := f.Open(t, models.Options{})
		check := func(name string, claims widget.Claims, want error) {
			t.Helper()
			// The last one answers from memory.
			for _, store := range []*models.Store{f.Store, elsewhere, elsewhere} {
				checkError(t, name, modelstest.CheckToken(ctx, store, claims), want)
			}
		}
		check("its own", modelstest.ClaimsOf(c, key, agent), nil)
		check("another account's key", modelstest.ClaimsOf(c, otherKey, agent), widget.ErrInvalid)
		check("another account's agent", modelstest.ClaimsOf(c, key, otherAgent), value.ErrAgentNotFound)
		check("another account", modelstest.ClaimsOf(other, otherKey, otherAgent), nil)
		check("no such key", modelstest.ClaimsOf(c, keys.Key{ID: newID()}, agent), value.ErrKeyRevoked)
		check("no such agent", modelstest.ClaimsOf(c, key, agents.Agent{ID: newID()}), value.ErrAgentNotFound)
		check("zero key", modelstest.ClaimsOf(c, keys.Key{}, agent), widget.ErrInvalid)
		check("no ids", widget.Claims{AccountID: c.ID}, widget.ErrInvalid)
		check("nothing", widget.Claims{}, widget.ErrInvalid)

		revoked, _ := f.Key(t, c)
		check("before the key's revocation", modelstest.ClaimsOf(c, revoked, agent), nil)
		f.Revoke(t, revoked)
		check("key revoked", modelstest.ClaimsOf(c, revoked, agent), value.ErrKeyRevoked)
		removed := f.Agent(t, c)
		check("before the agent's removal", modelstest.ClaimsOf(c, key, removed), nil)
		must(t, errOf(f.Agents.Remove(ctx, c.ID, removed.ID, c.Actor)))
		check("agent removed", modelstest.ClaimsOf(c, key, removed), value.ErrAgentNotFound)
		must(t, errOf(f.Agents.Create(ctx, c.ID, agents.NewAgent{ID: removed.ID, Name: "Back"}, c.Actor)))
		check("agent created again", modelstest.ClaimsOf(c, key, removed), nil)
		f.Exec(t, "UPDATE agents SET account_id = ? WHERE id = ?", other.ID, removed.ID)
		check("agent moved away", modelstest.ClaimsOf(c, key, removed), value.ErrAgentNotFound)
		check("agent moved here", modelstest.ClaimsOf(other, otherKey, removed), nil)
		check("still its own", modelstest.ClaimsOf(c, key, agent), nil)
		f.Exec(t, "UPDATE accounts SET disabled_at = created_at WHERE id = ?", c.ID)
		check("account disabled", modelstest.ClaimsOf(c, key, agent), value.ErrAccountDisabled)
		check("the account beside it", modelstest.ClaimsOf(other, otherKey, otherAgent), nil)
		f.Exec(t, "UPDATE accounts SET disabled_at = NULL WHERE id = ?", c.ID)
		check("account enabled", modelstest.ClaimsOf(c, key, agent), nil)
		f.Exec(t, "DELETE FROM api_keys WHERE id = ?", key.ID)
		check("key deleted", modelstest.ClaimsOf(c, key, agent), value.ErrKeyRevoked)
	})
}
