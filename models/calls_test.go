package models_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/livekit"
	"portal/models/modelstest"
	"portal/models/modelstest/livekitserver"
	"portal/models/modelstest/subprocess"
	"portal/models/widget"
)

// callFixture is a fixture with a LiveKit server.
type callFixture struct {
	*fixture
	server *livekitserver.Server
}

// eachDatabaseWithCalls is [eachDatabase] with a LiveKit server.
func eachDatabaseWithCalls(t *testing.T, run func(t *testing.T, f callFixture)) {
	t.Helper()
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		server := modelstest.LiveKit(t)
		run(t, callFixture{newFixture(t, url, models.Options{LiveKit: server.Portal()}), server})
	})
}

func (f callFixture) open(t *testing.T, agentID, keyID uuid.UUID) *livekitserver.Call {
	t.Helper()
	return modelstest.Value(f.server.Join(t.Context(), agentID, keyID))(t)
}

func expectEnd(t *testing.T, calls ...*livekitserver.Call) {
	t.Helper()
	for _, call := range calls {
		eventually(t, "the call ends", func() bool { return !call.Open() })
	}
}

// endedCalls waits until the activities about ended calls have this many calls together, and
// returns these activities.
func (f callFixture) endedCalls(t *testing.T, c customer, want int64) []models.Activity {
	t.Helper()
	var ended []models.Activity
	eventually(t, fmt.Sprintf("%d ended calls are recorded", want), func() bool {
		ended = f.recorded(t, c, models.ActionCallsEnded)
		total := int64(0)
		for _, activity := range ended {
			total += activity.Count
		}
		if total > want {
			t.Fatalf("%d ended calls, want %d", total, want)
		}
		return total == want
	})
	return ended
}

func (f *fixture) hangUps(t *testing.T) int {
	t.Helper()
	return f.count(t, "SELECT count(*) FROM hang_ups")
}

func TestRevocationEndsCalls(t *testing.T) {
	eachDatabaseWithCalls(t, func(t *testing.T, f callFixture) {
		ctx, c := t.Context(), f.customer(t)
		agent, key, other := f.agent(t, c), errless(f.key(t, c)), errless(f.key(t, c))
		first, second := f.open(t, agent.ID, key.ID), f.open(t, newID(), key.ID)
		another := f.open(t, agent.ID, other.ID)
		must(t, f.server.CreateRoom(ctx, "lobby"))
		must(t, errOf(f.Keys.Revoke(ctx, c.ID, key.ID, "", c.actor)))
		expectEnd(t, first, second)
		ended := f.endedCalls(t, c, 2)
		if len(ended) != 1 || *ended[0].SubjectID != key.ID || ended[0].Label != key.Label ||
			*ended[0].ActorID != c.user.ID || ended[0].Address != c.actor.Address {
			t.Errorf("recorded %+v", ended)
		}

		// The participant joins again with the same token, twice within a minute.
		for range 2 {
			again := modelstest.Value(first.Again(ctx))(t)
			f.clock.Advance(2 * time.Second)
			expectEnd(t, again)
		}
		f.clock.Advance(time.Minute)
		if ended := f.endedCalls(t, c, 4); len(ended) != 2 {
			t.Errorf("%d activities, want 2", len(ended))
		}
		if !another.Open() {
			t.Error("a call of another key was ended")
		}

		again := modelstest.Value(first.Again(ctx))(t)
		f.clock.Advance(2 * time.Second)
		expectEnd(t, again)
		f.clock.Advance(widget.MaxTTL + 3*time.Minute)
		eventually(t, "the work is dropped once every token has expired", func() bool { return f.hangUps(t) == 0 })
		f.endedCalls(t, c, 5)
	})
}

// LiveKit keeps a room for minutes after its visitor has left.
func TestOpenCallsHaveAVisitor(t *testing.T) {
	t.Parallel()
	server := modelstest.LiveKit(t)
	f := callFixture{newFixture(t, modelstest.SQLiteURL(t), models.Options{LiveKit: server.Portal()}), server}
	c := f.customer(t)
	key, _ := f.key(t, c)
	must(t, server.CreateRoom(t.Context(), fmt.Sprintf("%s_%s_%032x", newID(), key.ID, 1)))
	expect := func(calls int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d calls are open", calls), func() bool {
			return *f.Calls.Open(t.Context(), key) == models.OpenCalls{Known: true, Count: calls}
		})
	}
	agent := f.agent(t, c)
	first := modelstest.Value(server.Join(t.Context(), agent.ID, key.ID))(t)
	second := modelstest.Value(server.Join(t.Context(), agent.ID, key.ID))(t)
	expect(2)
	must(t, first.Leave())
	expect(1)
	f.revoke(t, key)
	expectEnd(t, second)
	f.endedCalls(t, c, 1)
	f.clock.Advance(2 * time.Second)
	expect(0)
	f.endedCalls(t, c, 1)
}

func TestExpiryAndShorterListEndCalls(t *testing.T) {
	eachDatabaseWithCalls(t, func(t *testing.T, f callFixture) {
		f.inRealTime()
		ctx, c := t.Context(), f.customer(t)
		kept, dropped := f.agent(t, c), f.agent(t, c)
		r := models.Restrictions{ExpiresAt: f.in(3 * time.Hour), Agents: []uuid.UUID{kept.ID, dropped.ID}}
		key, _ := f.generate(t, c, restricted(r), c.actor)
		goesOn, ends := f.open(t, kept.ID, key.ID), f.open(t, dropped.ID, key.ID)
		r.Agents = r.Agents[:1]
		must(t, errOf(f.Keys.Restrict(ctx, c.ID, key.ID, r, "", c.actor)))
		expectEnd(t, ends)
		if ended := f.endedCalls(t, c, 1); *ended[0].SubjectID != key.ID || *ended[0].ActorID != c.user.ID || !goesOn.Open() {
			t.Errorf("recorded %+v", ended)
		}
		f.clock.Advance(models.HangUpLife)
		eventually(t, "only the expiry waits", func() bool { return f.hangUps(t) == 1 })
		f.clock.Advance(2 * time.Hour)
		expectEnd(t, goesOn)
		if ended := f.endedCalls(t, c, 2); ended[0].ActorKind != models.ActorOperator || ended[0].Label != key.Label {
			t.Errorf("recorded %+v", ended)
		}
		f.clock.Advance(models.HangUpLife)
		eventually(t, "the work is dropped", func() bool { return f.hangUps(t) == 0 })
	})
}

func TestDisabledAccountAndRemovedAgentEndCalls(t *testing.T) {
	eachDatabaseWithCalls(t, func(t *testing.T, f callFixture) {
		ctx, c := t.Context(), f.customer(t)
		for name, test := range map[string]struct {
			end   func(models.Agent) error
			allow func(models.Agent) error
		}{
			"disabled account": {
				func(models.Agent) error { return f.Accounts.SetDisabled(ctx, c.ID, true, models.Operator()) },
				func(models.Agent) error { return f.Accounts.SetDisabled(ctx, c.ID, false, models.Operator()) },
			},
			"removed agent": {
				func(agent models.Agent) error { return errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.actor)) },
				func(agent models.Agent) error {
					_, _, err := f.Agents.Put(ctx, c.ID, agent.ID, "Reception", models.Operator())
					return err
				},
			},
		} {
			agent := f.agent(t, c)
			call, other := f.open(t, agent.ID, newID()), f.open(t, newID(), newID())
			must(t, test.end(agent))
			expectEnd(t, call)
			if !other.Open() {
				t.Errorf("%s: the call of another account was ended", name)
			}
			must(t, test.allow(agent))
			if n := f.hangUps(t); n != 0 {
				t.Errorf("%s: calls are still being ended after the return (%d)", name, n)
			}
		}
		f.endedCalls(t, c, 2)
	})
}

// A call outlives its token.
func TestCallsEndAfterALongOutageOfLiveKit(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		server := modelstest.LiveKit(t)
		link := server.Link()
		t.Cleanup(link.Close)
		link.Cut(true)
		f := callFixture{newFixture(t, databaseURL, models.Options{LiveKit: link.Portal()}), server}
		c := f.customer(t)
		key, _ := f.key(t, c)
		call := f.open(t, newID(), key.ID)
		f.revoke(t, key)
		for _, passed := range []time.Duration{2 * time.Second, widget.MaxTTL + 3*time.Minute, 2 * time.Second} {
			before := f.Stats().HangUpFailures
			f.clock.Advance(passed)
			eventually(t, "another attempt fails", func() bool { return f.Stats().HangUpFailures > before })
		}
		if age, err := f.Calls.EndingFor(t.Context()); err != nil || age != widget.MaxTTL+3*time.Minute+4*time.Second || !call.Open() {
			t.Fatalf("the age of the work is %s: %v", age, err)
		}
		link.Cut(false)
		f.clock.Advance(2 * time.Second)
		expectEnd(t, call)
		f.endedCalls(t, c, 1)
		eventually(t, "the work is dropped", func() bool { return f.hangUps(t) == 0 })
	})
}

func TestSlowLiveKitDoesNotShareWork(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		server := modelstest.LiveKit(t)
		link := server.Link()
		t.Cleanup(link.Close)
		f := callFixture{newFixture(t, databaseURL, models.Options{LiveKit: link.Portal()}), server}
		c := f.customer(t)
		key, _ := f.key(t, c)
		f.open(t, newID(), key.ID)
		f.open(t, newID(), key.ID)
		held := link.HoldNext()
		f.revoke(t, key)
		release := <-held
		f.clock.Advance(6 * time.Second)
		must(t, f.fixture.open(t, models.Options{}).EndCalls(t.Context())) // on another instance
		release()
		f.endedCalls(t, c, 2)
	})
}

func TestWorkWithoutLiveKitIsPurged(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		key, _ := f.key(t, f.customer(t))
		f.revoke(t, key)
		for _, step := range []struct {
			passed time.Duration
			want   int
		}{{widget.MaxTTL + 3*time.Minute, 1}, {25 * time.Hour, 0}} {
			f.clock.Advance(step.passed)
			must(t, f.Purge(t.Context()))
			if n := f.hangUps(t); n != step.want {
				t.Errorf("%s later: %d rows, want %d", step.passed, n, step.want)
			}
		}
	})
}

func TestCallsEndOnceLiveKitIsBack(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		port := modelstest.Value(subprocess.FreePort())(t)
		away := livekit.New(livekit.Options{
			URL:    &url.URL{Scheme: "ws", Host: fmt.Sprintf("127.0.0.1:%d", port)},
			APIKey: livekitserver.APIKey, APISecret: livekitserver.APISecret,
		})
		log := &modelstest.LogBuffer{}
		f := newFixture(t, databaseURL, models.Options{LiveKit: away, Logger: log.Logger()})
		c := f.customer(t)
		key, _ := f.key(t, c)
		if open := f.Calls.Open(t.Context(), key); open == nil || open.Known {
			t.Errorf("open calls without LiveKit: %+v", open)
		}
		f.revoke(t, key)
		eventually(t, "the failure is logged", func() bool { return strings.Contains(log.String(), "cannot end calls") })
		server := modelstest.Value(livekitserver.StartOn(context.Background(), port))(t)
		t.Cleanup(server.Stop)
		calls := callFixture{f, server}
		call := calls.open(t, newID(), key.ID)
		f.clock.Advance(2 * time.Second)
		expectEnd(t, call)
		calls.endedCalls(t, c, 1)
		if n := strings.Count(log.String(), "cannot end calls"); n != 1 || strings.Contains(log.String(), livekitserver.APISecret) {
			t.Errorf("the log has the failure %d times:\n%s", n, log)
		}
	})
}

// One instance at a time has the work. Each call is in one activity.
func TestInstancesShareTheWorkOfEndingCalls(t *testing.T) {
	eachDatabaseWithCalls(t, func(t *testing.T, f callFixture) {
		f.fixture.open(t, models.Options{LiveKit: f.server.Portal()})
		c := f.customer(t)
		var keys []models.Key
		var calls []*livekitserver.Call
		for range 5 {
			key, _ := f.key(t, c)
			keys = append(keys, key)
			calls = append(calls, f.open(t, newID(), key.ID), f.open(t, newID(), key.ID))
		}
		for _, key := range keys {
			f.revoke(t, key)
		}
		expectEnd(t, calls...)
		f.endedCalls(t, c, int64(len(calls)))
	})
}

func errless(key models.Key, _ string) models.Key { return key }
