package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models"
)

// The user of the first account of a tenant.
const (
	benchEmail    = "bench@example.com"
	benchPassword = "a password for the benchmark"
)

// tenant is the owner of keys.
type tenant struct {
	accountID uuid.UUID // the first account, which has a user
	keys      []apiKey
}

type apiKey struct {
	id, accountID   uuid.UUID
	secret, agentID string
}

// newTenant creates an account with an agent and one key. It creates the schema if it is missing.
func newTenant(ctx context.Context, databaseURL string) (t tenant, err error) {
	store, err := models.Open(ctx, databaseURL, models.Options{})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, store.Close(ctx)) }()
	account, err := store.Accounts.Create(ctx, models.NewAccount{Name: "Bench", Email: benchEmail, Password: benchPassword})
	if err != nil {
		return t, err
	}
	agent, err := store.Agents.Create(ctx, account.ID, models.NewAgent{Name: "Bench"}, models.Operator())
	if err != nil {
		return t, err
	}
	key, secret, err := store.Keys.Generate(ctx, account.ID, models.NewKey{Label: "Bench", FormID: uuid.New()}, models.Operator())
	if err != nil {
		return t, err
	}
	return tenant{account.ID, []apiKey{{key.ID, account.ID, secret, agent.ID.String()}}}, nil
}

// addKeys adds n keys. Each account has an agent and at most 100 keys, the first account included.
func (t *tenant) addKeys(ctx context.Context, databaseURL string, n int) error {
	now := time.Now()
	var accounts []models.Account
	var agents []models.Agent
	owner := t.keys[0]
	for total := len(t.keys) + n; len(t.keys) < total; {
		if len(t.keys)%models.MaxActiveKeys == 0 {
			account := models.Account{ID: newID(), Name: "Bench", CreatedAt: now}
			agent := models.Agent{ID: newID(), AccountID: account.ID, Name: "Bench", CreatedAt: now}
			accounts, agents = append(accounts, account), append(agents, agent)
			owner = apiKey{accountID: account.ID, agentID: agent.ID.String()}
		}
		t.keys = append(t.keys, apiKey{newID(), owner.accountID, newKey(), owner.agentID})
	}
	return inTransaction(ctx, databaseURL, func(tx bun.Tx) error {
		return errors.Join(
			insert(ctx, tx, len(accounts), func(i int) models.Account { return accounts[i] }),
			insert(ctx, tx, len(agents), func(i int) models.Agent { return agents[i] }),
			insert(ctx, tx, n, func(i int) models.Key {
				key := t.keys[len(t.keys)-n+i]
				hash := sha256.Sum256([]byte(key.secret))
				return models.Key{
					ID: key.id, AccountID: key.accountID, Label: "Bench", KeyHash: hash[:],
					LastFour: key.secret[len(key.secret)-4:], FormID: uuid.New(), CreatedAt: now,
				}
			}),
		)
	})
}

// newID returns a UUIDv7, as the store does.
func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
