package calls_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/agents"
	"portal/models/calls"
	"portal/models/keys"
	"portal/models/livekit"
	"portal/models/modelstest"
	"portal/models/modelstest/livekitserver"
	"portal/models/modelstest/subprocess"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// callFixture is a fixture with a LiveKit server and the real time. Rounds do not wait until they
// are due, because the tests' polls wake them.
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
		run(t, callFixture{newFixture(t, url, models.Options{LiveKit: server.Portal(), Now: time.Now, Mail: true}), server})
	})
}

func (f callFixture) open(t *testing.T, agentID, keyID uuid.UUID) *livekitserver.Call {
	t.Helper()
	return modelstest.Value(f.server.Join(t.Context(), agentID, keyID))(t)
}

// openReported opens a call and reports its start as LiveKit does for a modelstest.Browser, because
// a list counts a visitor only after seconds.
func (f callFixture) openReported(t *testing.T, agent agents.Agent, key keys.Key) *livekitserver.Call {
	t.Helper()
	call := f.open(t, agent.ID, key.ID)
	rooms := modelstest.Value(livekitserver.Rooms(t.Context(), f.server.Portal()))(t)
	rooms = slices.DeleteFunc(rooms, func(room livekit.Room) bool { return room.KeyID != key.ID })
	event := modelstest.Joined(agent, key, 1)
	event.Room = slices.MaxFunc(rooms, func(a, b livekit.Room) int { return a.CreatedAt.Compare(b.CreatedAt) })
	must(t, f.Calls.Report(t.Context(), event))
	return call
}

// listed waits until the account has this many calls that go on, and returns all its calls.
func (f *fixture) listed(t *testing.T, c customer, open int) []calls.Call {
	t.Helper()
	var list []calls.Call
	eventually(t, fmt.Sprintf("%d calls are open", open), func() bool {
		f.Calls.Wake()
		list = modelstest.Value(f.Calls.List(t.Context(), calls.CallPage{AccountID: c.ID, Limit: 100}))(t)
		return len(slices.DeleteFunc(slices.Clone(list), func(call calls.Call) bool { return !call.Open() })) == open
	})
	return list
}

// expectReason waits until the account's only call of a key has ended, and checks why.
func (f *fixture) expectReason(t *testing.T, c customer, key keys.Key, want calls.EndReason) {
	t.Helper()
	var list []calls.Call
	eventually(t, "the call ends: "+string(want), func() bool {
		f.Calls.Wake()
		list = modelstest.Value(f.Calls.List(t.Context(), calls.CallPage{AccountID: c.ID, KeyID: key.ID, Limit: 10}))(t)
		return len(list) > 0 && !list[0].Open()
	})
	if len(list) != 1 || list[0].EndReason != want {
		t.Errorf("%d calls, the first ended by %s, want %s", len(list), list[0].EndReason, want)
	}
}

// expectEnd waits until the visitors of these calls are disconnected.
func (f callFixture) expectEnd(t *testing.T, calls ...*livekitserver.Call) {
	t.Helper()
	for _, call := range calls {
		eventually(t, "the call ends", func() bool {
			f.Calls.Wake()
			return !call.Open()
		})
	}
}

// passTime lets the calls be older than it takes until LiveKit's lists have them.
func (f callFixture) passTime(t *testing.T) {
	t.Helper()
	f.Exec(t, "UPDATE calls SET started_at = ? WHERE ended_at IS NULL", time.Now().UTC().Add(-10*time.Second))
}

// awaitMissing waits until this many open calls are missing in a list, and lets the time until the
// next but one pass.
func (f callFixture) awaitMissing(t *testing.T, want int) {
	t.Helper()
	eventually(t, "calls are missing in the list", func() bool {
		f.Calls.Wake()
		return f.Count(t, "SELECT count(*) FROM calls WHERE ended_at IS NULL AND unseen_since IS NOT NULL") == want
	})
	f.Exec(t, "UPDATE calls SET unseen_since = ? WHERE unseen_since IS NOT NULL", time.Now().UTC().Add(-10*time.Second))
}

// endedCalls waits until the activities about ended calls have this many calls together, and
// returns these activities.
func (f *fixture) endedCalls(t *testing.T, c customer, want int64) []record.Activity {
	t.Helper()
	var ended []record.Activity
	eventually(t, fmt.Sprintf("%d ended calls are recorded", want), func() bool {
		f.Calls.Wake()
		ended = f.Recorded(t, c, record.ActionCallsEnded)
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

// A call ends for each change of access, and has its reason. Another key's call goes on.
func TestChangesOfAccessEndCalls(t *testing.T) {
	eachDatabaseWithCalls(t, func(t *testing.T, f callFixture) {
		ctx := t.Context()
		untouched := f.Customer(t)
		goesOn := f.open(t, f.Agent(t, untouched).ID, modelstest.Errless(f.Key(t, untouched)).ID)
		var checks []func() // after all changes, so that the tests share rounds
		for _, test := range []struct {
			reason calls.EndReason
			end    func(c customer, key keys.Key, agent, other agents.Agent) error
		}{
			{calls.EndKeyRevoked, func(c customer, key keys.Key, _, _ agents.Agent) error {
				return errOf(f.Keys.Revoke(ctx, c.ID, key.ID, "", c.Actor))
			}},
			{calls.EndKeyExpired, func(c customer, key keys.Key, _, _ agents.Agent) error {
				at := time.Now().Add(time.Second)
				return errOf(f.Keys.Restrict(ctx, c.ID, key.ID, "", keys.Restrictions{ExpiresAt: &at}, "", c.Actor))
			}},
			{calls.EndKeyRestricted, func(c customer, key keys.Key, _, other agents.Agent) error {
				return errOf(f.Keys.Restrict(ctx, c.ID, key.ID, "", keys.Restrictions{Agents: []uuid.UUID{other.ID}}, "", c.Actor))
			}},
			{calls.EndAgentRemoved, func(c customer, _ keys.Key, agent, _ agents.Agent) error {
				return errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.Actor))
			}},
			{calls.EndAgentPaused, func(c customer, _ keys.Key, agent, _ agents.Agent) error {
				return errOf(f.Agents.SetPaused(ctx, c.ID, agent.ID, true, c.Actor))
			}},
			{calls.EndAccountDisabled, func(c customer, _ keys.Key, _, _ agents.Agent) error {
				return f.Accounts.SetDisabled(ctx, c.ID, true, record.Operator())
			}},
		} {
			c := f.Customer(t)
			key, agent, other := modelstest.Errless(f.Key(t, c)), f.Agent(t, c), f.Agent(t, c)
			ends := f.open(t, agent.ID, key.ID)
			must(t, test.end(c, key, agent, other))
			checks = append(checks, func() {
				f.expectEnd(t, ends)
				f.expectReason(t, c, key, test.reason)
				ended := f.endedCalls(t, c, 1)
				actor := c.Actor.Kind
				if test.reason == calls.EndKeyExpired {
					actor = record.ActorSystem
				}
				if test.reason == calls.EndAccountDisabled {
					actor = record.ActorOperator
				}
				if ended[0].ActorKind != actor || ended[0].Label == "" {
					t.Errorf("%s: recorded %+v", test.reason, ended[0])
				}
				if !goesOn.Open() {
					t.Errorf("%s: another account's call has ended", test.reason)
				}
			})
		}
		for _, check := range checks {
			check()
		}
	})
}

// Reports lock calls in the order of their rooms.
func TestEndsOfCallsAndReportsDoNotDeadlock(t *testing.T) {
	t.Parallel()
	server := modelstest.LiveKit(t)
	f := callFixture{newFixture(t, modelstest.PostgresURL(t), models.Options{LiveKit: server.Portal(), Now: time.Now, Mail: true}), server}
	ctx, c := t.Context(), f.Customer(t)
	agent, key := f.Agent(t, c), modelstest.Errless(f.Key(t, c))
	open := []*livekitserver.Call{f.open(t, agent.ID, key.ID), f.open(t, agent.ID, key.ID)}
	list := f.listed(t, c, 2)
	slices.SortFunc(list, func(a, b calls.Call) int { return strings.Compare(a.RoomID, b.RoomID) })
	f.Exec(t, "UPDATE calls SET visitors = visitors WHERE id = ?", list[0].ID) // moves the row behind that of the other call
	f.Exec(t, "ANALYZE calls")                                                 // so that it is read in this order
	report := modelstest.Value(f.DB.BeginTx(ctx, nil))(t)
	lock := func(call calls.Call) {
		t.Helper()
		modelstest.Value(report.ExecContext(ctx, "SELECT id FROM calls WHERE id = ? FOR UPDATE", call.ID))(t)
	}
	modelstest.Value(report.ExecContext(ctx, "SET LOCAL deadlock_timeout = '1ms'"))(t)
	lock(list[0])
	f.Revoke(t, key)
	f.Calls.Wake()
	eventually(t, "the end waits", func() bool {
		return f.Count(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'UPDATE%calls%ending = %'") == 1
	})
	lock(list[1])
	must(t, report.Commit())
	f.expectEnd(t, open...)
}

// A client that joins again with its token is disconnected again, and recorded once a minute.
func TestRevokedClientCannotComeBack(t *testing.T) {
	eachDatabaseWithCalls(t, func(t *testing.T, f callFixture) {
		c := f.Customer(t)
		agent, key := f.Agent(t, c), modelstest.Errless(f.Key(t, c))
		call := f.open(t, agent.ID, key.ID)
		f.Revoke(t, key)
		f.expectEnd(t, call)
		for range 2 {
			f.expectEnd(t, modelstest.Value(call.Again(t.Context()))(t))
		}
		f.endedCalls(t, c, 1)
	})
}

// Without webhooks, lists of rooms begin and end calls. An empty room is none.
func TestListsBeginAndEndCalls(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		server := modelstest.LiveKit(t)
		f := callFixture{newFixture(t, databaseURL, models.Options{LiveKit: server.Portal(), Now: time.Now}), server}
		c := f.Customer(t)
		agent, key := f.Agent(t, c), modelstest.Errless(f.Key(t, c))
		must(t, f.server.CreateRoom(t.Context(), fmt.Sprintf("%s_%s_%032x", agent.ID, key.ID, 1)))
		must(t, f.server.CreateRoom(t.Context(), "lobby"))
		before := time.Now()
		first := f.open(t, agent.ID, key.ID)
		f.open(t, agent.ID, key.ID)
		for _, call := range f.listed(t, c, 2) {
			if call.StartedAt.Before(before.Add(-time.Second)) {
				t.Errorf("started at %s, before %s", call.StartedAt, before)
			}
		}
		if open := modelstest.Value(f.Calls.Open(t.Context(), key.AccountID, key.ID))(t); !open.Known || open.Count != 2 {
			t.Errorf("open: %+v", open)
		}
		f.passTime(t)
		must(t, first.Leave())
		left := time.Now()
		f.awaitMissing(t, 1)
		list := f.listed(t, c, 1)
		ended := list[slices.IndexFunc(list, func(call calls.Call) bool { return !call.Open() })]
		if ended.EndedAt.After(left.Add(6*time.Second)) || ended.Exact || ended.EndReason != calls.EndUnknown {
			t.Errorf("the ended call: %+v", ended)
		}
		f.CheckCount(t, 2, "SELECT sum(calls) FROM call_totals WHERE subject_id = ?", key.ID)
	})
}

// roomLists is a fixture with a server whose lists of a key's rooms the test writes.
type roomLists struct {
	*fixture
	customer customer
	agent    agents.Agent
	key      keys.Key
	server   *livekitserver.Lists
}

func eachDatabaseWithLists(t *testing.T, run func(t *testing.T, l *roomLists)) {
	t.Helper()
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		server := livekitserver.NewLists()
		t.Cleanup(server.Close)
		f := newFixture(t, databaseURL, models.Options{LiveKit: server.Portal(), Now: time.Now})
		c := f.Customer(t)
		run(t, &roomLists{fixture: f, customer: c, agent: f.Agent(t, c), key: modelstest.Errless(f.Key(t, c)), server: server})
	})
}

// list runs a round so long after the last one. The list has these numbers of visitors by the
// number of the room, which is two minutes old. No other round is due.
func (l *roomLists) list(t *testing.T, after time.Duration, visitors map[int]int) {
	t.Helper()
	rooms := map[livekit.Room]int{}
	for n, count := range visitors {
		room := modelstest.Joined(l.agent, l.key, n).Room
		room.CreatedAt = time.Now().Add(-2 * time.Minute)
		rooms[room] = count
	}
	l.server.Set(rooms)
	eventually(t, "a round runs", func() bool {
		now := time.Now().UTC()
		l.Exec(t, "UPDATE call_rounds SET listed_at = ?, due_at = ?, lease_until = ?, epoch = (SELECT value FROM auth_epoch)",
			now.Add(-after), now.Add(time.Hour), now.Add(time.Hour))
		return modelstest.Value(l.Calls.RunRound(t.Context(), true))(t)
	})
}

// Two lists in a row without a visitor in a call's room end it, unless the visitor has just come,
// because lists count a visitor late.
func TestListsWithoutARoomEndItsCall(t *testing.T) {
	eachDatabaseWithLists(t, func(t *testing.T, l *roomLists) {
		event := modelstest.Joined(l.agent, l.key, 2)
		// The visitor has just come for the whole test.
		event.Visitor.JoinedAt = time.Now().Add(time.Minute)
		must(t, l.Calls.Report(t.Context(), event))
		for _, step := range []struct {
			visitors map[int]int
			open     string // rooms
		}{
			{map[int]int{1: 1, 2: 1, 3: 0}, "12"},
			{map[int]int{2: 0}, "12"},
			{map[int]int{2: 0}, "2"},
			{nil, "2"},
			{nil, ""},
		} {
			l.list(t, 5*time.Second, step.visitors)
			open := ""
			for n := range 4 {
				open += strings.Repeat(strconv.Itoa(n), l.Count(t, "SELECT count(*) FROM calls WHERE ended_at IS NULL AND room_id = ?", modelstest.Joined(l.agent, l.key, n).Room.ID))
			}
			if open != step.open {
				t.Errorf("a list of %v: open are %q, want %q", step.visitors, open, step.open)
			}
		}
	})
}

// A call that ended while the portal was stopped has ended at the last list before, not exactly,
// until LiveKit reports the end.
func TestCallsThatEndWhileThePortalIsStopped(t *testing.T) {
	eachDatabaseWithLists(t, func(t *testing.T, l *roomLists) {
		event := modelstest.Joined(l.agent, l.key, 1)
		event.Visitor.JoinedAt = event.CreatedAt.Add(-2 * time.Minute)
		must(t, l.Calls.Report(t.Context(), event))
		l.list(t, 5*time.Second, map[int]int{1: 1, 2: 1, 3: 1})
		began := time.Now()
		l.list(t, time.Minute, map[int]int{3: 1})
		until := time.Now()
		l.list(t, 5*time.Second, map[int]int{3: 1})
		last := func(at time.Time) bool {
			return !at.Before(began.Add(-time.Minute-time.Millisecond)) && !at.After(until.Add(-time.Minute))
		}
		for _, call := range l.listed(t, l.customer, 1) {
			if !call.Open() && (!last(*call.EndedAt) || call.Exact || call.EndReason != calls.EndUnknown) {
				t.Errorf("ended: %+v", call)
			}
		}
		end := event.CreatedAt.Add(-40 * time.Second)
		must(t, l.Calls.Report(t.Context(), modelstest.Left(event, end, "CLIENT_INITIATED")))
		l.CheckCount(t, 1, "SELECT count(*) FROM calls WHERE exact AND ended_at = ? AND end_reason = 'visitor_left'", end)
	})
}

// Lists become frequent again when an event begins a call.
func TestListsAreFrequentWhileACallIsOpen(t *testing.T) {
	eachDatabaseWithLists(t, func(t *testing.T, l *roomLists) {
		l.list(t, time.Minute, nil)
		now := time.Now().UTC()
		ago := now.Add(-10 * time.Second)
		l.Exec(t, "UPDATE call_rounds SET lease_until = ?, listed_at = ?, due_at = ?", ago, ago, now.Add(time.Hour))
		before := l.server.Requests()
		must(t, l.Calls.Report(t.Context(), modelstest.Joined(l.agent, l.key, 1)))
		eventually(t, "a list is requested", func() bool { return l.server.Requests() > before })
	})
}

// A call ends although LiveKit cannot list its rooms, because others have too many.
func TestEndsDoNotDependOnTheList(t *testing.T) {
	eachDatabaseWithLists(t, func(t *testing.T, l *roomLists) {
		event := modelstest.Joined(l.agent, l.key, 1)
		must(t, l.Calls.Report(t.Context(), event))
		l.server.Break()
		l.Revoke(t, l.key)
		eventually(t, "the room is ended", func() bool {
			l.Calls.Wake()
			return l.server.Ended(event.Room.Name)
		})
	})
}

// Rooms are listed when access is withdrawn, and often afterwards, but not because of something
// new.
func TestOnlyWithdrawnAccessListsRooms(t *testing.T) {
	eachDatabaseWithLists(t, func(t *testing.T, l *roomLists) {
		ctx := t.Context()
		idle := func() int64 {
			t.Helper()
			now := time.Now().UTC()
			l.Exec(t, "UPDATE call_rounds SET listed_at = ?0, checked_at = ?0, lease_until = ?0, watch_until = ?0, due_at = ?1, epoch = (SELECT value FROM auth_epoch)",
				now.Add(-10*time.Second), now.Add(time.Hour))
			return l.server.Requests()
		}
		before := idle()
		c := l.Customer(t)
		key, _ := l.Key(t, c)
		agent := l.Agent(t, c)
		if ran := modelstest.Value(l.Calls.RunRound(ctx, false))(t); ran || l.server.Requests() != before {
			t.Errorf("%d lists because of something new", l.server.Requests()-before)
		}
		for name, withdraw := range map[string]func() error{
			"a revoked key":   func() error { return errOf(l.Keys.Revoke(ctx, c.ID, key.ID, "", c.Actor)) },
			"a removed agent": func() error { return errOf(l.Agents.Remove(ctx, c.ID, agent.ID, c.Actor)) },
		} {
			before := idle()
			must(t, withdraw())
			eventually(t, "rooms are listed because of "+name, func() bool { return l.server.Requests() > before })
			eventually(t, "rooms are listed often", func() bool {
				return l.Count(t, "SELECT count(*) FROM call_rounds WHERE watch_until > ? AND due_at < ?", time.Now().UTC().Add(time.Hour), time.Now().UTC().Add(10*time.Second)) == 1
			})
		}
	})
}

// While LiveKit is away, nothing begins or ends. A call that ended meanwhile ended at the last
// list.
func TestCallsWhileLiveKitIsAway(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		server := modelstest.LiveKit(t)
		link := server.Link()
		t.Cleanup(link.Close)
		f := callFixture{newFixture(t, databaseURL, models.Options{LiveKit: link.Portal(), Now: time.Now}), server}
		c := f.Customer(t)
		agent, key := f.Agent(t, c), modelstest.Errless(f.Key(t, c))
		leaves, ends := f.open(t, agent.ID, key.ID), f.open(t, agent.ID, key.ID)
		f.listed(t, c, 2)
		link.Cut(true)
		failed := f.Stats().CallFailures
		must(t, leaves.Leave())
		f.Revoke(t, key)
		eventually(t, "rounds fail", func() bool {
			f.Calls.Wake()
			return f.Stats().CallFailures > failed+1
		})
		cut := time.Now()
		f.listed(t, c, 2)
		eventually(t, "LiveKit has noticed that the visitor has left", func() bool {
			rooms := modelstest.Value(livekitserver.Rooms(t.Context(), server.Portal()))(t)
			return len(slices.DeleteFunc(rooms, func(room livekit.Room) bool { return room.KeyID != key.ID || room.Empty })) == 1
		})
		link.Cut(false)
		f.expectEnd(t, ends)
		for _, call := range f.listed(t, c, 0) {
			if call.EndReason == calls.EndUnknown && call.EndedAt.After(cut) {
				t.Errorf("ended at %s, after the last list before %s", call.EndedAt, cut)
			}
		}
		f.endedCalls(t, c, 1)
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
		f := newFixture(t, databaseURL, models.Options{LiveKit: away, Logger: log.Logger(), Now: time.Now})
		c := f.Customer(t)
		key, agent := modelstest.Errless(f.Key(t, c)), f.Agent(t, c)
		if open := modelstest.Value(f.Calls.Open(t.Context(), key.AccountID, key.ID))(t); open == nil || open.Known {
			t.Errorf("open calls without LiveKit: %+v", open)
		}
		f.Revoke(t, key)
		eventually(t, "the failure is logged", func() bool { return strings.Contains(log.String(), "cannot list or end calls") })
		server := modelstest.Value(livekitserver.StartOn(context.Background(), port))(t)
		t.Cleanup(server.Stop)
		calls := callFixture{f, server}
		calls.expectEnd(t, calls.open(t, agent.ID, key.ID))
		f.endedCalls(t, c, 1)
		if n := strings.Count(log.String(), "cannot list or end calls"); n != 1 || strings.Contains(log.String(), livekitserver.APISecret) {
			t.Errorf("the log has the failure %d times:\n%s", n, log)
		}
	})
}

// One instance at a time has a round. Each call is in one activity.
func TestInstancesShareRounds(t *testing.T) {
	eachDatabaseWithCalls(t, func(t *testing.T, f callFixture) {
		f.Open(t, models.Options{LiveKit: f.server.Portal(), Now: time.Now})
		c := f.Customer(t)
		agent := f.Agent(t, c)
		var keys []keys.Key
		var calls []*livekitserver.Call
		for range 5 {
			key, _ := f.Key(t, c)
			keys = append(keys, key)
			calls = append(calls, f.open(t, agent.ID, key.ID), f.open(t, agent.ID, key.ID))
		}
		for _, key := range keys {
			f.Revoke(t, key)
		}
		f.expectEnd(t, calls...)
		f.endedCalls(t, c, int64(len(calls)))
	})
}

func TestLimitsEndCalls(t *testing.T) {
	eachDatabaseWithCalls(t, func(t *testing.T, f callFixture) {
		ctx, c := t.Context(), f.Customer(t)
		agent := f.Agent(t, c)
		key, _ := f.Generate(t, c, restricted(keys.Restrictions{Limits: value.Limits{Calls: 2, MinutesPerCall: 1}}), c.Actor)
		first, second := f.openReported(t, agent, key), f.openReported(t, agent, key)
		f.listed(t, c, 2)
		third := f.openReported(t, agent, key)
		f.expectEnd(t, third)
		f.listed(t, c, 2)
		if !first.Open() || !second.Open() {
			t.Error("a call within the limit has ended")
		}

		// A minute later.
		f.Exec(t, "UPDATE calls SET started_at = ? WHERE ended_at IS NULL", time.Now().UTC().Add(-time.Minute))
		f.expectEnd(t, first, second)
		reasons := map[calls.EndReason]int{}
		for _, call := range f.listed(t, c, 0) {
			reasons[call.EndReason]++
		}
		if reasons[calls.EndLimitCalls] != 1 || reasons[calls.EndLimitPerCall] != 2 {
			t.Errorf("reasons: %v", reasons)
		}

		// The account's month.
		other, _ := f.Key(t, c)
		f.Exec(t, "UPDATE call_totals SET seconds = 120 WHERE subject_id = ?", c.ID)
		must(t, errOf(f.Accounts.SetLimits(ctx, c.ID, value.Limits{MinutesPerMonth: 2}, record.Operator())))
		call := f.openReported(t, agent, other)
		f.expectEnd(t, call)
		f.expectReason(t, c, other, calls.EndLimitPerMonth)
		for _, action := range []record.Action{record.ActionLimitApproaching, record.ActionLimitReached} {
			if noted := f.Recorded(t, c, action); len(noted) != 1 || noted[0].ActorKind != record.ActorSystem {
				t.Errorf("%s: recorded %+v", action, noted)
			}
		}
		f.CheckCount(t, 2, "SELECT count(*) FROM outbox WHERE kind LIKE 'limit.%'")
	})
}

// The token endpoint refuses at a limit, but not while the calls are unknown.
func TestLimitsRefuseTokens(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		ctx, c := t.Context(), f.Customer(t)
		agent := f.Agent(t, c)
		limited, secret := f.Generate(t, c, restricted(keys.Restrictions{Limits: value.Limits{Calls: 1, MinutesPerMonth: 10}}), c.Actor)
		_, free := f.Key(t, c)
		check := func(secret string) error {
			t.Helper()
			caller := modelstest.Value(f.API.Authenticate(ctx, secret, keys.Source{}))(t)
			if !caller.CallsLimited() {
				return nil
			}
			return f.API.CheckCalls(ctx, caller)
		}
		expect := func(want calls.EndReason, err error) {
			t.Helper()
			if want == "" {
				must(t, err)
				return
			}
			limit, _ := errors.AsType[*calls.LimitError](err)
			if limit == nil || limit.Reason != want || limit.Wait <= 0 || limit.Wait > value.Day {
				t.Errorf("%v, want %q", err, want)
			}
		}
		list := func(ago time.Duration) {
			f.Exec(t, "UPDATE call_rounds SET listed_at = ?", time.Now().UTC().Add(-ago))
		}
		expect("", check(secret))
		event := modelstest.Joined(agent, limited, 1)
		must(t, f.Calls.Report(ctx, event))
		expect("", check(secret)) // never listed
		list(0)
		expect(calls.EndLimitCalls, check(secret))
		expect("", check(free))
		list(time.Minute)
		expect("", check(secret)) // LiveKit is away
		list(0)
		must(t, f.Calls.Report(ctx, modelstest.Left(event, time.Now().Add(10*time.Minute), "CLIENT_INITIATED")))
		expect(calls.EndLimitPerMonth, check(secret))
		must(t, errOf(f.Keys.Restrict(ctx, c.ID, limited.ID, "", keys.Restrictions{}, "", c.Actor)))
		expect("", check(secret))
		must(t, errOf(f.Accounts.SetLimits(ctx, c.ID, value.Limits{MinutesPerMonth: 10}, record.Operator())))
		expect(calls.EndLimitPerMonth, check(free))
	})
}

// Repeated, reversed and shuffled events give the same calls and totals.
func TestOrderOfEventsDoesNotMatter(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		midnight := f.Clock.Now().Truncate(value.Day).Add(value.Day)
		f.Clock.Advance(midnight.Add(30 * time.Second).Sub(f.Clock.Now()))
		var expected string
		random := rand.New(rand.NewPCG(1, 2))
		for _, order := range []string{"in order", "twice", "reversed", "shuffled", "shuffled twice"} {
			c := f.Customer(t)
			agent, key := f.Agent(t, c), modelstest.Errless(f.Key(t, c))
			at := func(seconds int) time.Time { return midnight.Add(time.Duration(seconds-10) * time.Second) }
			var events []livekit.Event
			add := func(room int, id, identity string, from, until int, reason string) {
				e := modelstest.Joined(agent, key, room)
				e.Visitor.ID, e.Visitor.Identity, e.Visitor.JoinedAt, e.CreatedAt = id, identity, at(from), at(from)
				events = append(events, e)
				if reason != "" {
					events = append(events, modelstest.Left(e, at(until), reason))
				}
			}
			add(1, "PA_1", "anna", 0, 15, "CLIENT_INITIATED")
			add(2, "PA_2", "ben", 1, 5, "DUPLICATE_IDENTITY")
			add(2, "PA_3", "ben", 4, 20, "CONNECTION_TIMEOUT")
			add(3, "PA_4", "cleo", 2, 6, "CLIENT_INITIATED")
			add(3, "PA_5", "dan", 3, 30, "AGENT_ERROR")
			add(4, "PA_6", "eve", 5, 0, "") // goes on
			add(4, "PA_7", "fay", 6, 7, "CLIENT_INITIATED")
			log := slices.Clone(events)
			switch order {
			case "twice":
				log = slices.Concat(events, events)
			case "reversed":
				slices.Reverse(log)
			case "shuffled":
				random.Shuffle(len(log), func(i, j int) { log[i], log[j] = log[j], log[i] })
			case "shuffled twice":
				log = slices.Concat(events, events)
				random.Shuffle(len(log), func(i, j int) { log[i], log[j] = log[j], log[i] })
			}
			for _, e := range log {
				must(t, f.Calls.Report(ctx, e))
			}
			got := f.callTables(t, c, key)
			if expected == "" {
				expected = got
				t.Log(got)
			}
			if got != expected {
				t.Errorf("%s:\n%s\nwant\n%s", order, got, expected)
			}
		}
	})
}

// callTables returns what the tables say about the calls of a key.
func (f *fixture) callTables(t *testing.T, c customer, key keys.Key) string {
	t.Helper()
	var b strings.Builder
	list := modelstest.Value(f.Calls.List(t.Context(), calls.CallPage{AccountID: c.ID, KeyID: key.ID, Limit: 100}))(t)
	slices.SortFunc(list, func(a, b calls.Call) int { return strings.Compare(a.RoomID, b.RoomID) })
	for _, call := range list {
		room := call.RoomID[strings.LastIndex(call.RoomID, "_"):]
		fmt.Fprintf(&b, "%s %s %v %s %t %s", room, call.StartedAt.UTC(), call.EndedAt, call.EndReason, call.Exact, *call.UserID)
		for _, v := range call.Visitors {
			fmt.Fprintf(&b, " %s %s %s %s %v", v.Identity, v.ID, v.First.UTC(), v.Joined.UTC(), v.Left)
		}
		fmt.Fprintln(&b)
	}
	for _, subject := range []uuid.UUID{key.ID, c.ID} {
		var totals []struct {
			Day            time.Time
			Calls, Seconds int64
		}
		must(t, f.DB.NewSelect().TableExpr("call_totals").Column("day", "calls", "seconds").Where("subject_id = ?", subject).
			OrderExpr("day").Scan(t.Context(), &totals))
		fmt.Fprintln(&b, totals)
	}
	return b.String()
}

// A start that arrives late begins nothing, and a late end makes an end exact that only lists saw.
func TestLateEvents(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		agent, key := f.Agent(t, c), modelstest.Errless(f.Key(t, c))
		event := modelstest.Joined(agent, key, 1)
		event.CreatedAt, event.Visitor.JoinedAt = f.Clock.Now().Add(-61*time.Second), f.Clock.Now().Add(-61*time.Second)
		must(t, f.Calls.Report(ctx, event))
		f.listed(t, c, 0)
		f.CheckCount(t, 0, "SELECT count(*) FROM calls")

		event.CreatedAt = f.Clock.Now()
		must(t, f.Calls.Report(ctx, event))
		f.Exec(t, "UPDATE calls SET ended_at = ?, end_reason = 'unknown', exact = false", f.Clock.Now().Add(-30*time.Second))
		must(t, f.Calls.Report(ctx, event))
		f.listed(t, c, 0)
		must(t, f.Calls.Report(ctx, modelstest.Left(event, f.Clock.Now().Add(-20*time.Second), "SIGNAL_CLOSE")))
		list := f.listed(t, c, 0)
		if call := list[0]; len(list) != 1 || !call.Exact || call.EndReason != calls.EndConnectionLost || call.Seconds(f.Clock.Now()) != 40 {
			t.Errorf("%+v", list)
		}
		// The visitor comes back before the room is finished.
		again := event
		again.Visitor.ID, again.Visitor.JoinedAt = "PA_2", f.Clock.Now()
		must(t, f.Calls.Report(ctx, again))
		if calls := f.listed(t, c, 1); len(calls) != 1 || calls[0].EndReason != "" || !calls[0].Exact {
			t.Errorf("%+v", calls)
		}
	})
}

// Once the minutes of a month are used up, they stay so when LiveKit reports the end of the call in
// whole seconds.
func TestTheEndOfACallReturnsNoSeconds(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		event := modelstest.Joined(f.Agent(t, c), modelstest.Errless(f.Key(t, c)), 1)
		event.CreatedAt = f.Clock.Now()
		event.Visitor.JoinedAt = event.CreatedAt.Truncate(time.Second).Add(400 * time.Millisecond)
		must(t, f.Calls.Report(t.Context(), event))
		f.Clock.Advance(time.Minute)
		used := func() int64 { return modelstest.Value(f.Calls.Used(t.Context(), c.ID, uuid.Nil))(t).Seconds }
		before := used()
		must(t, f.Calls.Report(t.Context(), modelstest.Left(event, f.Clock.Now(), "PARTICIPANT_REMOVED")))
		if after := used(); before == 0 || after < before {
			t.Errorf("%d seconds, and %d after the end", before, after)
		}
	})
}

// A user's end has its reason before LiveKit reports it.
func TestEndCall(t *testing.T) {
	eachDatabaseWithCalls(t, func(t *testing.T, f callFixture) {
		ctx, c := t.Context(), f.Customer(t)
		agent := f.Agent(t, c)
		for _, by := range []struct {
			actor  record.Actor
			reason calls.EndReason
		}{{c.Actor, calls.EndedInPortal}, {record.Operator(), calls.EndedByOperator}} {
			key, _ := f.Key(t, c)
			call := f.openReported(t, agent, key)
			id := f.listed(t, c, 1)[0].ID
			checkError(t, "of another account", errOf(f.Calls.End(ctx, newID(), id, by.actor)), value.ErrCallNotFound)
			must(t, errOf(f.Calls.End(ctx, c.ID, id, by.actor)))
			f.expectEnd(t, call)
			f.expectReason(t, c, key, by.reason)
			must(t, errOf(f.Calls.End(ctx, c.ID, id, by.actor))) // it has ended
		}
		if ended := f.Recorded(t, c, record.ActionCallEnded); len(ended) != 2 {
			t.Errorf("recorded %+v", ended)
		}
	})
}

// The statements of a round do not depend on how many keys were revoked.
func TestRoundsDoNotGrowWithRevocations(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		// A server of its own has no rooms.
		server := modelstest.Value(livekitserver.Start(t.Context()))(t)
		t.Cleanup(server.Stop)
		f := newFixture(t, databaseURL, models.Options{LiveKit: server.Portal(), Now: time.Now})
		count := func() int {
			seen := &modelstest.QueryLog{}
			store := f.WithQueryHook(seen)
			eventually(t, "a round runs", func() bool {
				seen.All = nil
				return modelstest.Value(store.Calls.RunRound(t.Context(), true))(t)
			})
			return len(seen.All)
		}
		c := f.Customer(t)
		few := count()
		for range 50 {
			f.Revoke(t, modelstest.Errless(f.Key(t, c)))
		}
		if many := count(); many > few {
			t.Errorf("%d statements, and %d after 50 revocations", few, many)
		}
	})
}

// A round with 1,000 open rooms of 100 keys, beside 100,000 calls that have ended.
func BenchmarkRound(b *testing.B) {
	for name, url := range map[string]func(testing.TB) string{"sqlite": modelstest.SQLiteURL, "postgres": modelstest.PostgresURL} {
		b.Run(name, func(b *testing.B) {
			ctx, databaseURL := b.Context(), url(b)
			server := modelstest.Value(livekitserver.Start(ctx))(b)
			b.Cleanup(server.Stop)
			f := &fixture{&modelstest.Fixture{URL: databaseURL, DB: modelstest.OpenDatabase(b, databaseURL)}}
			f.Store = modelstest.Open(b, databaseURL, models.Options{LiveKit: server.Portal(), Timeout: models.Timeout})
			account := people.Account{ID: newID(), Name: "Acme", CreatedAt: time.Now()}
			must(b, errOf(f.DB.NewInsert().Model(&account).Exec(ctx)))
			agent := modelstest.Value(f.Agents.Create(ctx, account.ID, agents.NewAgent{Name: "Front desk", FormID: newID()}, record.Operator()))(b)
			var list []calls.Call
			var ofAccount []keys.Key
			for range 100 {
				key, _, err := f.Keys.Generate(ctx, account.ID, keys.NewKey{Label: newID().String(), FormID: newID()}, record.Operator())
				must(b, err)
				ofAccount = append(ofAccount, key)
				for range 1000 {
					ended := time.Now().UTC()
					list = append(list, calls.Call{
						ID: newID(), AccountID: account.ID, KeyID: key.ID, AgentID: agent.ID, RoomID: newID().String(), StartedAt: ended.Add(-time.Minute), EndedAt: &ended,
					})
				}
			}
			for batch := range slices.Chunk(list, 1000) {
				must(b, errOf(f.DB.NewInsert().Model(&batch).Exec(ctx)))
			}
			for i := range 1000 {
				modelstest.Value(server.Join(ctx, agent.ID, ofAccount[i%len(ofAccount)].ID))(b)
			}
			for b.Loop() {
				b.StopTimer()
				must(b, errOf(f.DB.ExecContext(ctx, "UPDATE call_rounds SET listed_at = NULL, lease_until = checked_at")))
				b.StartTimer()
				if !modelstest.Value(f.Calls.RunRound(ctx, true))(b) {
					b.Fatal("another round is running")
				}
			}
		})
	}
}

// A key is revoked, and its call ends, beside 100,000 rooms of another account.
func BenchmarkEndBesideManyRooms(b *testing.B) {
	for name, url := range map[string]func(testing.TB) string{"sqlite": modelstest.SQLiteURL, "postgres": modelstest.PostgresURL} {
		b.Run(name, func(b *testing.B) {
			ctx, databaseURL := b.Context(), url(b)
			server := livekitserver.NewLists()
			b.Cleanup(server.Close)
			f := &fixture{&modelstest.Fixture{URL: databaseURL, DB: modelstest.OpenDatabase(b, databaseURL)}}
			f.Store = modelstest.Open(b, databaseURL, models.Options{})
			rooms := map[livekit.Room]int{}
			var list []calls.Call
			add := func(agent agents.Agent, key keys.Key, n int) livekit.Room {
				room := modelstest.Joined(agent, key, n).Room
				room.CreatedAt = time.Now().Add(-2 * time.Minute)
				rooms[room] = 1
				list = append(list, calls.Call{
					ID: newID(), AccountID: key.AccountID, KeyID: key.ID, AgentID: agent.ID, RoomID: room.ID, RoomName: room.Name, StartedAt: room.CreatedAt.UTC(),
				})
				return room
			}
			customer := func() agents.Agent {
				account := people.Account{ID: newID(), Name: "Acme", CreatedAt: time.Now()}
				must(b, errOf(f.DB.NewInsert().Model(&account).Exec(ctx)))
				return modelstest.Value(f.Agents.Create(ctx, account.ID, agents.NewAgent{Name: "Front desk", FormID: newID()}, record.Operator()))(b)
			}
			key := func(agent agents.Agent) keys.Key {
				key, _, err := f.Keys.Generate(ctx, agent.AccountID, keys.NewKey{Label: newID().String(), FormID: newID()}, record.Operator())
				must(b, err)
				return key
			}
			many, one := customer(), customer()
			for range 100 {
				k := key(many)
				for n := range 1000 {
					add(many, k, n)
				}
			}
			var keys []keys.Key
			var ends []livekit.Room
			for range 50 {
				keys = append(keys, key(one))
				ends = append(ends, add(one, keys[len(keys)-1], 1))
			}
			for batch := range slices.Chunk(list, 1000) {
				must(b, errOf(f.DB.NewInsert().Model(&batch).Exec(ctx)))
			}
			server.Set(rooms)
			f.Store = modelstest.Open(b, databaseURL, models.Options{LiveKit: server.Portal(), Timeout: models.Timeout})
			var longest, total time.Duration
			n, refused := 0, 0
			for b.Loop() {
				time.Sleep(time.Duration(n%7) * time.Second) // anywhere in a round
				began := time.Now()
				for errOf(f.Keys.Revoke(ctx, one.AccountID, keys[n].ID, "", record.Operator())) != nil {
					refused++
				}
				for !server.Ended(ends[n].Name) && time.Since(began) < time.Minute {
					time.Sleep(5 * time.Millisecond)
				}
				took := time.Since(began)
				b.Logf("%s: ended after %s, %d failed rounds, %d refused revocations", name, took.Round(time.Millisecond), f.Stats().CallFailures, refused)
				longest, total = max(longest, took), total+took
				n++
			}
			b.ReportMetric(longest.Seconds(), "s/longest")
			b.ReportMetric(total.Seconds()/float64(n), "s/end")
		})
	}
}
