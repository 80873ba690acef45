package erasure_test

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models"
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/usage"
	"portal/models/value"
)

// leftovers is an account whose key and agent are still in the memory of instances.
type leftovers struct {
	customer
	key   keys.Key
	agent agents.Agent
}

func (f *fixture) leftovers(t *testing.T) leftovers {
	t.Helper()
	c := f.Customer(t)
	key, _ := f.Key(t, c)
	return leftovers{customer: c, key: key, agent: f.Agent(t, c)}
}

// remember lets a store have as much as possible in memory that it writes in the background.
func (l leftovers) remember(s *models.Store) {
	from := usage.NewSource(netip.MustParseAddr(evesAddress), "curl")
	now := l.key.CreatedAt
	s.Usage.Add(l.key, from, now, 2, 1)
	s.Usage.Add(l.key, from, now.Add(value.Day), 1, 0) // moves the counts of the hour before
	s.Agents.Used(l.ID, l.agent.ID, l.key.ID)
	s.API.NoteRefusal(keys.Principal{AccountID: l.ID, KeyID: l.key.ID}, keys.Refusal{Reason: "address", Route: "GET /api/agents", From: from})
}

// begin begins the erasure of the account.
func (l leftovers) begin(t *testing.T, f *fixture) {
	t.Helper()
	must(t, f.Accounts.SetDisabled(t.Context(), l.ID, true, record.Operator()))
	must(t, f.Erasures.BeginAccount(t.Context(), l.ID))
}

// checkErased fails the test if the database has anything of the account.
func (l leftovers) checkErased(t *testing.T, f *fixture) {
	t.Helper()
	if found := f.holds(t, []string{l.key.ID.String(), l.agent.ID.String(), evesAddress, l.User.ID.String()}); found != nil {
		t.Errorf("after the erasure the database holds %q", found)
	}
}

func TestErasedAccountStaysErased(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		left := f.leftovers(t)
		// Two instances write: one after the first rows were deleted, one in the end.
		f.Briefly(t, models.Options{}, left.remember)
		left.begin(t, f)
		written := false
		erasing := f.WithQueryHook(modelstest.Before(func(ctx context.Context, event *bun.QueryEvent) context.Context {
			if !written && strings.Contains(event.Query, "DELETE FROM exchanges") {
				written = true
				f.Briefly(t, models.Options{}, left.remember)
			}
			return ctx
		}))
		f.Briefly(t, models.Options{}, func(other *models.Store) {
			must(t, erasing.Erasures.Finish(t.Context()))
			left.checkErased(t, f)
			left.remember(other)
		})
		left.checkErased(t, f)
		if !written {
			t.Error("nothing was written during the erasure")
		}
	})
}

// awaitLocks returns when this many statements wait for locks.
func (f *fixture) awaitLocks(t *testing.T, n int) {
	t.Helper()
	modelstest.Eventually(t, "statements wait for locks", func() bool {
		return n == f.Count(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
	})
}

// The erasure waits for a write that has begun before.
func TestErasureWaitsForWritesInTheBackground(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t), models.Options{})
	ctx, left := t.Context(), f.leftovers(t)
	left.begin(t, f)
	other := modelstest.Value(f.DB.BeginTx(ctx, nil))(t)
	must(t, errOf(other.ExecContext(ctx, "LOCK TABLE api_key_sources IN SHARE MODE")))
	var running sync.WaitGroup
	running.Go(func() { f.Briefly(t, models.Options{}, left.remember) })
	f.awaitLocks(t, 1)
	finished := make(chan error, 1)
	go func() { finished <- f.Erasures.Finish(ctx) }()
	f.awaitLocks(t, 2)
	must(t, other.Rollback())
	running.Wait()
	must(t, <-finished)
	left.checkErased(t, f)
}

// A write in the background keeps several keys, in the order of their ids.
func TestErasureAndWritesInTheBackgroundDoNotDeadlock(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t), models.Options{})
	ctx, left := t.Context(), f.leftovers(t)
	later, _ := f.Key(t, left.customer)
	f.Exec(t, "UPDATE api_keys SET label = 'changed' WHERE id = ?", left.key.ID) // moves the row behind that of the other key
	left.begin(t, f)
	other := modelstest.Value(f.DB.BeginTx(ctx, nil))(t)
	keep := func(id uuid.UUID) {
		t.Helper()
		modelstest.Value(other.ExecContext(ctx, "SELECT id FROM api_keys WHERE id = ? FOR KEY SHARE", id))(t)
	}
	keep(left.key.ID)
	finished := make(chan error, 1)
	go func() { finished <- f.Erasures.Finish(ctx) }()
	f.awaitLocks(t, 1)
	keep(later.ID)
	must(t, other.Commit())
	must(t, <-finished)
	left.checkErased(t, f)
}
