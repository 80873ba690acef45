package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"portal/models"
)

// tenant is an account with an agent and keys.
type tenant struct {
	accountID, agentID uuid.UUID
	keys               []apiKey
}

type apiKey struct {
	id     uuid.UUID
	secret string
}

// requests returns one request with each of the first n keys.
func (t *tenant) requests(n int) [][]byte {
	requests := make([][]byte, n)
	for i := range requests {
		requests[i] = tokenRequest(t.keys[i].secret, t.agentID.String())
	}
	return requests
}

// newTenant creates an account with an agent and one key. It creates the schema if it is missing.
func newTenant(ctx context.Context, databaseURL string) (t tenant, err error) {
	store, err := models.Open(ctx, databaseURL, models.Options{})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, store.Close(ctx)) }()
	account, err := store.CreateAccount(ctx, models.NewAccount{
		Name: "Bench", Email: "bench@example.com", Password: uuid.NewString(),
	})
	if err != nil {
		return t, err
	}
	agent, err := store.CreateAgent(ctx, account.ID, models.NewAgent{Name: "Bench"}, models.Operator())
	if err != nil {
		return t, err
	}
	key, secret, err := store.GenerateAPIKey(ctx, account.ID, models.NewAPIKey{Label: "Bench", FormID: uuid.New()}, models.Operator())
	if err != nil {
		return t, err
	}
	return tenant{accountID: account.ID, agentID: agent.ID, keys: []apiKey{{key.ID, secret}}}, nil
}

// addKeys adds n keys to the account in a PostgreSQL database. It copies them to the table, because
// the store creates keys one by one.
func (t *tenant) addKeys(ctx context.Context, databaseURL string, n int) (err error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	added := make([]apiKey, n)
	now := time.Now()
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"api_keys"},
		[]string{"id", "account_id", "label", "key_hash", "last_four", "form_id", "created_at"},
		pgx.CopyFromSlice(n, func(i int) ([]any, error) {
			key := apiKey{uuid.New(), newKey()}
			added[i] = key
			hash := sha256.Sum256([]byte(key.secret))
			return []any{key.id, t.accountID, "Bench", hash[:], key.secret[len(key.secret)-4:], uuid.New(), now}, nil
		}))
	if err != nil {
		return fmt.Errorf("add keys: %w", err)
	}
	t.keys = append(t.keys, added...)
	_, err = conn.Exec(ctx, "ANALYZE api_keys")
	return err
}
