package models_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/value"
)

// A transaction that stays open, in a frozen instance or in an operator's psql, blocks no change
// of another account.
func TestOpenTransactionBlocksNoOtherAccount(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t), models.Options{})
	stalled, c := f.Customer(t), f.Customer(t)
	stalledKey, _ := f.Key(t, stalled)
	stalledAgent := f.Agent(t, stalled)
	key, secret := f.Key(t, c)
	agent := f.Agent(t, c)
	tx := modelstest.Value(f.DB.BeginTx(t.Context(), nil))(t)
	defer func() { _ = tx.Rollback() }()
	for statement, id := range map[string]any{
		"UPDATE api_keys SET revoked_at = now() WHERE id = ?":  stalledKey.ID,
		"DELETE FROM agents WHERE id = ?":                      stalledAgent.ID,
		"UPDATE accounts SET disabled_at = now() WHERE id = ?": stalled.ID,
	} {
		must(t, errOf(tx.ExecContext(t.Context(), statement, id)))
	}
	for name, do := range map[string]func(context.Context) error{
		"revoke": func(ctx context.Context) error { return errOf(f.Keys.Revoke(ctx, c.ID, key.ID, "", c.Actor)) },
		"generate": func(ctx context.Context) error {
			_, _, err := f.Keys.Generate(ctx, c.ID, form("x"), c.Actor)
			return err
		},
		"remove agent": func(ctx context.Context) error { return errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.Actor)) },
	} {
		checkError(t, name, do(t.Context()), nil)
	}
	modelstest.Refuse(t, f.Store, secret, 1)
}

// A revocation is confirmed only when the synchronous standby has it. This also holds if an earlier
// attempt was interrupted while it waited for the standby.
func TestRepeatedRevocationWaitsForTheStandby(t *testing.T) {
	t.Parallel()
	cluster := modelstest.OwnCluster(t, "synchronous_commit=on")
	f := newFixture(t, cluster.URL("postgres"), models.Options{})
	c := f.Customer(t)
	key, _ := f.Key(t, c)
	f.synchronousStandby(t, "nobody")
	// The old connections may not have read the setting yet.
	later := f.Open(t, models.Options{})
	for _, attempt := range []string{"first", "second"} {
		ctx, cancel := context.WithTimeout(t.Context(), models.Timeout)
		if _, err := later.Keys.Revoke(ctx, c.ID, key.ID, "", c.Actor); !errors.Is(err, value.ErrUnavailable) {
			t.Errorf("%s attempt: %v", attempt, err)
		}
		cancel()
		eventually(t, "the server has ended the attempt", func() bool {
			return f.Count(t, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == 0
		})
	}
	f.synchronousStandby(t, "")
	checkError(t, "with the standby again", errOf(f.Keys.Revoke(t.Context(), c.ID, key.ID, "", c.Actor)), value.ErrKeyAlreadyRevoked)
}

func (f *fixture) synchronousStandby(t *testing.T, name string) {
	t.Helper()
	f.Exec(t, "ALTER SYSTEM SET synchronous_standby_names = '"+name+"'")
	f.Exec(t, "SELECT pg_reload_conf()")
	eventually(t, "the setting is active", func() bool {
		var now string
		f.Scan(t, "SHOW synchronous_standby_names", nil, &now)
		return now == name
	})
	// The checkpointer lets transactions wait once it has read the setting.
	f.Exec(t, "CHECKPOINT")
}

// The server takes the locks from an instance that freezes in a transaction.
func TestFrozenInstanceLosesItsLocks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t), models.Options{})
	c := f.Customer(t)
	key, secret := f.Key(t, c)
	reached, release := make(chan struct{}), make(chan struct{})
	instance := f.WithQueryHook(modelstest.Before(func(ctx context.Context, event *bun.QueryEvent) context.Context {
		if event.IQuery != nil && event.IQuery.GetTableName() == "activities" {
			close(reached)
			<-release
		}
		return ctx
	}))
	result := make(chan error, 1)
	go func() {
		_, err := instance.Keys.Revoke(context.WithoutCancel(t.Context()), c.ID, key.ID, "", c.Actor)
		result <- err
	}()
	<-reached
	started := time.Now()
	eventually(t, "another instance has revoked the key", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), models.Timeout)
		defer cancel()
		_, err := f.Keys.Revoke(ctx, c.ID, key.ID, "", c.Actor)
		if err != nil && !errors.Is(err, value.ErrUnavailable) {
			t.Error(err)
		}
		return err == nil
	})
	t.Logf("the key was locked for %s", time.Since(started))
	modelstest.Refuse(t, f.Store, secret, 1)
	close(release)
	if err := <-result; !errors.Is(err, value.ErrUnavailable) {
		t.Errorf("the frozen instance: %v", err)
	}
}

// Users of the portal who retry, or load heavy pages, cannot take the API's connections.
func TestPortalCannotTakeTheConnectionsOfTheAPI(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		key, secret := f.Key(t, c)
		agent := f.Agent(t, c)
		release, err := f.TakeConnections(t.Context())
		defer release()
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p := modelstest.Value(f.API.Authenticate(ctx, secret, keys.Source{}))(t)
		if err := f.API.CheckAgent(ctx, p, agent.ID); err != nil {
			t.Errorf("agent: %v", err)
		}
		if agents, err := f.Agents.ReachedBy(ctx, p, modelstest.AllAgents); err != nil || len(agents.Items) != 1 {
			t.Errorf("agents: %+v, %v", agents, err)
		}
		if err := modelstest.CheckToken(ctx, f.Store, modelstest.ClaimsOf(c, key, agent)); err != nil {
			t.Errorf("token: %v", err)
		}
	})
}

// A token request may need a connection besides the authenticator's.
func TestNotReadyWhileATokenRequestGetsNoConnection(t *testing.T) {
	t.Parallel()
	admin := modelstest.OwnCluster(t).URL("postgres")
	// The limit of connections does not apply to superusers.
	modelstest.Exec(t, admin, "CREATE ROLE service LOGIN")
	modelstest.Exec(t, admin, "GRANT CREATE ON SCHEMA public TO service")
	f := newFixture(t, strings.Replace(admin, "portal@", "service@", 1), models.Options{})
	c := f.Customer(t)
	_, secret := f.Key(t, c)
	request := func() error {
		p := modelstest.Value(f.API.Authenticate(t.Context(), secret, keys.Source{}))(t)
		return f.API.CheckAgent(t.Context(), p, f.Agent(t, c).ID) // not in memory
	}
	modelstest.Value(f.API.Authenticate(t.Context(), secret, keys.Source{}))(t)
	f.Agent(t, c)
	modelstest.Exec(t, admin, "ALTER ROLE service CONNECTION LIMIT 0")
	checkError(t, "a token request", request(), value.ErrUnavailable)
	checkError(t, "ready", f.API.Ready(t.Context()), value.ErrUnavailable)

	modelstest.Exec(t, admin, "ALTER ROLE service CONNECTION LIMIT -1")
	must(t, f.API.Ready(t.Context()))
	modelstest.Exec(t, admin, "ALTER ROLE service CONNECTION LIMIT 0")
	// An instance that was ready keeps the connection.
	must(t, request())
	must(t, f.API.Ready(t.Context()))
	modelstest.Exec(t, admin, "ALTER ROLE service CONNECTION LIMIT -1")
}

// The store does not reconnect to a server that has become read-only, even if it is the only one.
func TestReadOnlyServerIsUnavailable(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t), models.Options{})
	_, secret := f.Key(t, f.Customer(t))
	modelstest.Use(t, f.Store, secret, 1)
	f.Exec(t, `DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database());
		PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid();
	END $$`)
	checkError(t, "authenticate", errOf(f.API.Authenticate(t.Context(), secret, keys.Source{})), value.ErrUnavailable)
	checkError(t, "ping", f.SignIn.Ready(t.Context()), value.ErrUnavailable)
}

// Bun escapes strings for standard_conforming_strings=on.
func TestURLCannotBreakTheEscapingOfStrings(t *testing.T) {
	t.Parallel()
	url := modelstest.PostgresURL(t)
	for _, setting := range []string{
		"&standard_conforming_strings=off&backslash_quote=on", "&options=-c%20standard_conforming_strings%3Doff",
	} {
		f := newFixture(t, url, models.Options{})
		f.Store = modelstest.Open(t, url+setting, models.Options{})
		key, _, err := f.Keys.Generate(t.Context(), f.Customer(t).ID, form(`a\'b\\`), record.Operator())
		if err != nil || key.Label != `a\'b\\` {
			t.Errorf("%s: %q, %v", setting, key.Label, err)
			continue
		}
		if found, err := f.Keys.FindAsOperator(t.Context(), key.ID); err != nil || found.Label != key.Label {
			t.Errorf("%s: %q, %v", setting, found.Label, err)
		}
	}
}
