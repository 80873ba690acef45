package calls_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/calls"
	"portal/models/livekit"
	"portal/models/modelstest"
	"portal/models/modelstest/livekitserver"
	"portal/models/modelstest/subprocess"
	"portal/models/record"
	"portal/models/value"
	"portal/models/webhooks"
)

// receiver adds a webhook for the calls of a customer.
func (f *fixture) receiver(t *testing.T, c customer) {
	t.Helper()
	_, _, err := f.Webhooks.Add(t.Context(), c.ID, "https://example.com/", []record.EventGroup{record.GroupCalls}, c.Actor)
	must(t, err)
}

// checkEnded fails the test unless so many events say that a call has ended.
func (f *fixture) checkEnded(t *testing.T, when string, want int) {
	t.Helper()
	if n := f.Count(t, "SELECT count(*) FROM webhook_deliveries WHERE event = 'call.ended'"); n != want {
		t.Errorf("%s: %d events that a call has ended, want %d", when, n, want)
	}
}

// A visitor who comes back before LiveKit finishes the room continues the call. The event that the
// call has ended is sent once, and then nothing changes.
func TestTheEndOfACallIsSentOnceAndIsFinal(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		f := newFixture(t, databaseURL, models.Options{Webhooks: &webhooks.Guard{}})
		ctx, c := t.Context(), f.Customer(t)
		f.receiver(t, c)
		key, _ := f.Key(t, c)
		first := modelstest.Joined(f.Agent(t, c), key, 1)
		begun := f.Clock.Now().Truncate(time.Second)
		first.CreatedAt, first.Visitor.JoinedAt = begun, begun
		must(t, f.Calls.Report(ctx, first))
		f.Clock.Advance(time.Second)
		must(t, f.Calls.Report(ctx, modelstest.Left(first, f.Clock.Now(), "SIGNAL_CLOSE")))
		f.checkEnded(t, "the visitor may come back", 0)
		f.Clock.Advance(18 * time.Second)
		second := first
		second.Visitor.ID, second.CreatedAt, second.Visitor.JoinedAt = "PA_2", f.Clock.Now(), f.Clock.Now()
		must(t, f.Calls.Report(ctx, second))
		f.Clock.Advance(5 * time.Second)
		must(t, f.Calls.Report(ctx, modelstest.Left(second, f.Clock.Now(), "CLIENT_INITIATED")))
		f.checkEnded(t, "the visitor may come back again", 0)
		f.Clock.Advance(20 * time.Second)
		finished := livekit.Event{Finished: true, CreatedAt: f.Clock.Now(), Room: first.Room}
		for range 2 {
			must(t, f.Calls.Report(ctx, finished))
			f.checkEnded(t, "the room is finished", 1)
		}
		call := f.listed(t, c, 0)[0]
		if !call.Final || !call.Exact || call.Seconds(f.Clock.Now()) != 24 {
			t.Errorf("%+v", call)
		}
		before := f.callTables(t, c, key)
		second.Visitor.ID, second.Visitor.JoinedAt = "PA_3", f.Clock.Now()
		must(t, f.Calls.Report(ctx, second))
		must(t, f.Calls.Report(ctx, modelstest.Left(second, f.Clock.Now(), "CLIENT_INITIATED")))
		if after := f.callTables(t, c, key); after != before {
			t.Errorf("%s\nand before\n%s", after, before)
		}
		f.checkEnded(t, "later", 1)
	})
}

// LiveKit's events come in any order. If a room is finished before the end of its visitor is
// reported, the report still counts.
func TestAFinishedRoomWaitsForTheEndOfItsVisitor(t *testing.T) {
	eachDatabaseWithLists(t, func(t *testing.T, l *roomLists) {
		ctx := t.Context()
		event := modelstest.Joined(l.agent, l.key, 1)
		event.Visitor.JoinedAt = event.CreatedAt.Add(-40 * time.Second)
		must(t, l.Calls.Report(ctx, event))
		must(t, l.Calls.Report(ctx, livekit.Event{Finished: true, CreatedAt: event.CreatedAt, Room: event.Room}))
		if call := l.listed(t, l.customer, 0)[0]; call.Final || call.Exact {
			t.Errorf("%+v", call)
		}
		must(t, l.Calls.Report(ctx, modelstest.Left(event, event.CreatedAt.Add(-10*time.Second), "CLIENT_INITIATED")))
		l.Exec(t, "UPDATE calls SET unseen_since = ?", time.Now().UTC().Add(-5*time.Second))
		l.list(t, 5*time.Second, nil)
		if call := l.listed(t, l.customer, 0)[0]; !call.Final || !call.Exact || call.Seconds(time.Now()) != 30 {
			t.Errorf("%+v", call)
		}
	})
}

// Without events, a call is final when two lists miss its room, and not while the room is only
// empty. If the end is not exact, it waits for the report of LiveKit, but not for long.
func TestListsMakeCallsFinal(t *testing.T) {
	eachDatabaseWithLists(t, func(t *testing.T, l *roomLists) {
		exact := modelstest.Joined(l.agent, l.key, 2)
		exact.Visitor.JoinedAt = exact.CreatedAt.Add(-time.Minute)
		must(t, l.Calls.Report(t.Context(), exact))
		final := func(after string, want ...int) {
			t.Helper()
			for room, n := range want {
				l.CheckCount(t, n, "SELECT count(*) FROM calls WHERE final AND ended_at IS NOT NULL AND room_id = ?", modelstest.Joined(l.agent, l.key, room+1).Room.ID)
			}
			if t.Failed() {
				t.Fatal("after " + after)
			}
		}
		pass := func(d time.Duration) {
			l.Exec(t, "UPDATE calls SET unseen_since = ? WHERE unseen_since IS NOT NULL AND ended_at IS NOT NULL", time.Now().UTC().Add(-d))
		}
		l.list(t, 5*time.Second, map[int]int{1: 1, 2: 1})
		must(t, l.Calls.Report(t.Context(), modelstest.Left(exact, time.Now().Add(-2*time.Second), "CLIENT_INITIATED")))
		for range 3 {
			l.list(t, 5*time.Second, map[int]int{1: 0, 2: 0})
		}
		final("empty rooms", 0, 0)
		l.list(t, 5*time.Second, nil)
		final("a list without the rooms", 0, 0)
		pass(5 * time.Second)
		l.list(t, 5*time.Second, nil)
		final("two lists", 0, 1)
		pass(15 * time.Second)
		l.list(t, 5*time.Second, nil)
		final("lists for 15 s", 1, 1)

		// A call whose room lingers, or that ended before LiveKit went away, is final too.
		l.list(t, 5*time.Second, map[int]int{3: 1})
		l.Exec(t, "UPDATE calls SET ended_at = ?, end_reason = 'unknown' WHERE ended_at IS NULL", time.Now().UTC().Add(-80*time.Second))
		l.list(t, 5*time.Second, map[int]int{3: 0})
		final("80 s", 1, 1, 1)
	})
}

// A call that a user ends while LiveKit is away stays ended when its visitor comes back into a new
// room of that name.
func TestAnEndedCallStaysEnded(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		port := modelstest.Value(subprocess.FreePort())(t)
		server := modelstest.Value(livekitserver.StartOn(context.Background(), port))(t)
		f := callFixture{newFixture(t, databaseURL, models.Options{LiveKit: server.Portal(), Now: time.Now}), server}
		c := f.Customer(t)
		visitor := f.openReported(t, f.Agent(t, c), modelstest.Errless(f.Key(t, c)))
		server.Stop()
		id := f.listed(t, c, 1)[0].ID
		must(t, errOf(f.Calls.End(t.Context(), c.ID, id, c.Actor)))
		server = modelstest.Value(livekitserver.StartOn(context.Background(), port))(t)
		t.Cleanup(server.Stop)
		for range 2 {
			again := modelstest.Value(visitor.Again(t.Context()))(t)
			f.expectEnd(t, again)
		}
		f.Exec(t, "UPDATE calls SET unseen_since = ? WHERE unseen_since IS NOT NULL", time.Now().UTC().Add(-10*time.Second))
		list := f.listed(t, c, 0)
		if len(list) != 1 || list[0].EndReason != calls.EndedInPortal {
			t.Errorf("%d calls, the first one ended by %s", len(list), list[0].EndReason)
		}
	})
}

// The times in an event or a list can be wrong. No call is older than calls are kept, or longer.
func TestImpossibleTimesOfCalls(t *testing.T) {
	eachDatabaseWithLists(t, func(t *testing.T, l *roomLists) {
		ctx, now := t.Context(), time.Now().UTC().Truncate(time.Second)
		for n, at := range []time.Time{{}, time.Unix(1, 0), time.Unix(1<<40, 0), now.Add(-100 * value.Day), now.AddDate(1, 0, 0)} {
			event := modelstest.Joined(l.agent, l.key, 10*n)
			event.Visitor.JoinedAt = at
			must(t, l.Calls.Report(ctx, event))
			event = modelstest.Left(modelstest.Joined(l.agent, l.key, 10*n+1), now, "CLIENT_INITIATED")
			event.Visitor.JoinedAt = at
			must(t, l.Calls.Report(ctx, event))
			event = modelstest.Left(modelstest.Joined(l.agent, l.key, 10*n+2), at, "CLIENT_INITIATED")
			must(t, l.Calls.Report(ctx, event))
			event = modelstest.Joined(l.agent, l.key, 10*n+3)
			event.Room.CreatedAt, event.Visitor.JoinedAt = now.Add(-time.Minute), now.Add(-time.Hour)
			must(t, l.Calls.Report(ctx, event))
		}
		l.CheckCount(t, 0, "SELECT count(*) FROM calls WHERE started_at < ? OR started_at > ? OR ended_at < started_at OR ended_at > ?",
			now.Add(-10*time.Minute), now.Add(time.Minute), now.Add(time.Minute))
		if used := modelstest.Value(l.Calls.Used(ctx, l.customer.ID, uuid.Nil))(t); used.Seconds > 1000 {
			t.Errorf("%d seconds", used.Seconds)
		}
		old := modelstest.Joined(l.agent, l.key, 100).Room
		old.CreatedAt = time.Unix(1, 0)
		l.server.Set(map[livekit.Room]int{old: 1})
		eventually(t, "the list begins the call", func() bool {
			l.Exec(t, "UPDATE call_rounds SET listed_at = NULL, lease_until = checked_at")
			must(t, errOf(l.Calls.RunRound(ctx, true)))
			return l.Count(t, "SELECT count(*) FROM calls WHERE room_id = ? AND started_at > ?", old.ID, now.Add(-time.Minute)) == 1
		})
	})
}
