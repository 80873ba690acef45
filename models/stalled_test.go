package models_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
)

// A transaction that stays open, in a frozen instance or in an operator's psql, blocks no change
// of another account.
func TestOpenTransactionBlocksNoOtherAccount(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t), models.Options{})
	stalled, c := f.customer(t), f.customer(t)
	stalledKey, _ := f.key(t, stalled)
	stalledAgent := f.agent(t, stalled)
	key, secret := f.key(t, c)
	agent := f.agent(t, c)
	tx, err := f.db.BeginTx(t.Context(), nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }()
	for statement, id := range map[string]any{
		"UPDATE api_keys SET revoked_at = now() WHERE id = ?":  stalledKey.ID,
		"DELETE FROM agents WHERE id = ?":                      stalledAgent.ID,
		"UPDATE accounts SET disabled_at = now() WHERE id = ?": stalled.ID,
	} {
		must(t, errOf(tx.ExecContext(t.Context(), statement, id)))
	}
	for name, do := range map[string]func(context.Context) error{
		"revoke": func(ctx context.Context) error { return errOf(f.RevokeAPIKey(ctx, c.ID, key.ID, c.actor)) },
		"generate": func(ctx context.Context) error {
			_, _, err := f.GenerateAPIKey(ctx, c.ID, form("x"), c.actor)
			return err
		},
		"remove agent": func(ctx context.Context) error { return errOf(f.RemoveAgent(ctx, c.ID, agent.ID, c.actor)) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), models.Timeout)
		checkError(t, name, do(ctx), nil)
		cancel()
	}
	refuse(t, f.Store, secret, 1)
}

// A revocation is confirmed only when the synchronous standby has it, also if an earlier attempt
// was interrupted while it waited for the standby.
func TestRepeatedRevocationWaitsForTheStandby(t *testing.T) {
	t.Parallel()
	cluster := modelstest.OwnCluster(t, "synchronous_commit=on")
	f := newFixture(t, cluster.URL("postgres"), models.Options{})
	c := f.customer(t)
	key, _ := f.key(t, c)
	f.synchronousStandby(t, "nobody")
	for _, attempt := range []string{"first", "second"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := f.RevokeAPIKey(ctx, c.ID, key.ID, c.actor); !errors.Is(err, models.ErrUnavailable) {
			t.Errorf("%s attempt: %v", attempt, err)
		}
		cancel()
		eventually(t, "the server has ended the attempt", func() bool {
			return f.count(t, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == 0
		})
	}
	f.synchronousStandby(t, "")
	checkError(t, "with the standby again", errOf(f.RevokeAPIKey(t.Context(), c.ID, key.ID, c.actor)), models.ErrKeyAlreadyRevoked)
}

func (f *fixture) synchronousStandby(t *testing.T, name string) {
	t.Helper()
	f.exec(t, "ALTER SYSTEM SET synchronous_standby_names = '"+name+"'")
	f.exec(t, "SELECT pg_reload_conf()")
	eventually(t, "the setting is active", func() bool {
		var now string
		f.scan(t, "SHOW synchronous_standby_names", nil, &now)
		return now == name
	})
}
