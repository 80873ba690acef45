package models_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/value"
)

// During an outage every result is ErrUnavailable, and no usage count is lost.
func TestPostgresOutage(t *testing.T) {
	t.Parallel()
	cluster := modelstest.OwnCluster(t)
	logged := &modelstest.LogBuffer{}
	f := newFixture(t, cluster.URL("postgres"), models.Options{Logger: logged.Logger(), Timeout: models.Timeout})
	c := f.Customer(t)
	key, secret := f.Key(t, c)
	revokedKey, revokedSecret := f.Key(t, c)
	f.Revoke(t, revokedKey)
	token := f.Session(t, c)
	modelstest.Use(t, f.Store, secret, 5)

	var requests, refusals int64 = 5, 0
	written := func() bool {
		return modelstest.Sum(f.Days(t, key)) == requests && f.Refusals(t, revokedKey) == refusals
	}
	for range 2 {
		eventually(t, "usage before the outage is written", written)
		must(t, cluster.Halt())
		away := func(name string, do func(context.Context) error) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), models.Timeout)
			defer cancel()
			started := time.Now()
			err := do(ctx)
			if took := time.Since(started); !errors.Is(err, value.ErrUnavailable) || took > 30*time.Second {
				t.Errorf("%s: %v after %s", name, err, took)
			}
			for _, answer := range []error{
				value.ErrKeyUnknown, value.ErrKeyRevoked, value.ErrKeyNotFound, value.ErrSessionNotFound, value.ErrWrongCredentials,
			} {
				if errors.Is(err, answer) {
					t.Errorf("%s: answered %v", name, err)
				}
			}
		}
		for _, value := range []string{secret, secret, revokedSecret, modelstest.UnknownKey} {
			away("authenticate", func(ctx context.Context) error {
				p, err := f.API.Authenticate(ctx, value, keys.Source{})
				if p.KeyID != uuid.Nil {
					t.Errorf("%+v", p)
				}
				return err
			})
		}
		away("list", func(ctx context.Context) error { return errOf(f.Keys.Active(ctx, c.ID)) })
		away("revoke", func(ctx context.Context) error { return errOf(f.Keys.Revoke(ctx, c.ID, key.ID, "", c.Actor)) })
		away("sign in", func(ctx context.Context) error {
			return errOf(f.SignIn.VerifyPassword(ctx, c.User.Email, password, people.Client{Address: "203.0.113.7"}))
		})
		away("session", func(ctx context.Context) error { return errOf(f.Sessions.Find(ctx, token, modelstest.Browser)) })
		away("ping", f.SignIn.Ready)
		must(t, cluster.Resume())
		f.DB = modelstest.OpenDatabase(t, f.URL) // The test's own connections are dead.
		// Those of the store are dead too, but no request fails because of that.
		modelstest.Use(t, f.Store, secret, 2)
		modelstest.Refuse(t, f.Store, revokedSecret, 1)
		must(t, f.SignIn.Ready(t.Context()))
		keys, err := f.Keys.Active(t.Context(), c.ID)
		if err != nil || len(keys) != 1 || keys[0].LastUsedAt == nil {
			t.Errorf("listed %+v, %v", keys, err)
		}
		must(t, errOf(f.Sessions.Find(t.Context(), token, modelstest.Browser)))
		requests, refusals = requests+2, refusals+1
		eventually(t, "usage before and after the outage is written", written)
	}
}

// A server that confirms commits before they are on disk loses them in a crash. The portal confirms
// no revocation on such terms.
func TestConfirmedRevocationSurvivesACrashOfPostgres(t *testing.T) {
	t.Parallel()
	cluster := modelstest.OwnCluster(t, "synchronous_commit=off", "wal_writer_delay=10s")
	f := newFixture(t, cluster.URL("postgres"), models.Options{})
	c := f.Customer(t)
	key, secret := f.Key(t, c)
	kept, keptSecret := f.Key(t, c)
	modelstest.Use(t, f.Store, secret, 1)
	f.Exec(t, "CHECKPOINT")
	f.Revoke(t, key)
	must(t, cluster.Halt())
	must(t, cluster.Resume())
	restarted := f.Open(t, models.Options{})
	checkError(t, "the revoked key", errOf(restarted.API.Authenticate(t.Context(), secret, keys.Source{})), value.ErrKeyRevoked)
	checkError(t, "the other key", errOf(restarted.API.Authenticate(t.Context(), keptSecret, keys.Source{})), nil)
	found := modelstest.Value(restarted.Keys.Find(t.Context(), c.ID, kept.ID))(t)
	if found.RevokedAt != nil {
		t.Errorf("%+v", found)
	}
}

// While PostgreSQL hangs, for example on a stalled disk, requests fail at their deadline. They
// succeed again when it recovers.
func TestHangingPostgresIsUnavailable(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t), models.Options{Timeout: models.Timeout})
	key, secret := f.Key(t, f.Customer(t))
	modelstest.Use(t, f.Store, secret, 1)
	tx := modelstest.Value(f.DB.BeginTx(t.Context(), nil))(t)
	must(t, errOf(tx.ExecContext(t.Context(), "LOCK TABLE auth_epoch, api_keys IN ACCESS EXCLUSIVE MODE")))
	// Requests with different deadlines overlap, so that one waits whenever another one's
	// statement times out.
	next := time.NewTicker(150 * time.Millisecond)
	defer next.Stop()
	var running sync.WaitGroup
	for i := range 12 {
		running.Go(func() {
			limit := []time.Duration{models.Timeout, 700 * time.Millisecond}[i%2]
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			started := time.Now()
			p, err := f.API.Authenticate(ctx, []string{secret, modelstest.UnknownKey}[i/2%2], keys.Source{})
			if took := time.Since(started); !errors.Is(err, value.ErrUnavailable) || p.KeyID != uuid.Nil || took > limit+20*time.Second {
				t.Errorf("%+v, %v after %s of %s", p, err, took, limit)
			}
		})
		<-next.C
	}
	checkError(t, "ready", f.API.Ready(t.Context()), value.ErrUnavailable)
	running.Wait()
	must(t, tx.Rollback())
	must(t, f.API.Ready(t.Context()))
	modelstest.Use(t, f.Store, secret, 2)
	f.Revoke(t, key)
	modelstest.Refuse(t, f.Store, secret, 1)
}

// A primary that was demoted may keep its connections open, and its rows may be out of date.
func TestDemotedServerIsUnavailable(t *testing.T) {
	t.Parallel()
	// The test replaces PostgreSQL's own function.
	f := newFixture(t, modelstest.PostgresURL(t)+"&search_path=public,pg_catalog", models.Options{})
	c := f.Customer(t)
	_, secret := f.Key(t, c)
	agent := f.Agent(t, c)
	p := modelstest.Value(f.API.Authenticate(t.Context(), secret, keys.Source{}))(t)
	other := f.Open(t, models.Options{}) // later it would not open
	f.Exec(t, "CREATE FUNCTION public.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true'")
	checkError(t, "key", errOf(other.API.Authenticate(t.Context(), secret, keys.Source{})), value.ErrUnavailable)
	checkError(t, "agent", f.API.CheckAgent(t.Context(), p, agent.ID), value.ErrUnavailable)
}
