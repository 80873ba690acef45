// Package calls has the calls of agents: their log, their limits, and the rounds that compare them
// with LiveKit and end those whose key no longer allows them.
package calls

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/livekit"
	"portal/models/record"
	"portal/models/value"
)

// staleEvent is the age from which the event that a visitor has connected begins no call.
const staleEvent = time.Minute

// AccountOf returns the account of a key, or the zero id if the key does not exist.
func (c *Calls) AccountOf(ctx context.Context, keyID uuid.UUID) (accountID uuid.UUID, err error) {
	err = c.db.NewSelect().Table("api_keys").Column("account_id").Where("id = ?", keyID).Scan(ctx, &accountID)
	return accountID, value.Failed("find the account of a key", value.NoRows(err, nil))
}

// Report records events of LiveKit in one transaction. Repeated and late events, in any order, give
// the same calls. It ignores events about keys that do not exist.
func (c *Calls) Report(ctx context.Context, events ...livekit.Event) error {
	var keys, agents []uuid.UUID
	for _, e := range events {
		keys, agents = append(keys, e.Room.KeyID), append(agents, e.Room.AgentID)
	}
	wake := false
	err := c.db.InTx(ctx, "record events of calls", func(ctx context.Context, tx db.Tx) error {
		access, err := readCallAccess(ctx, tx, tx.DB, keys, agents)
		if err != nil {
			return err
		}
		kept, err := tx.KeepKeys(ctx, keys)
		if err != nil {
			return err
		}
		reports := byRoom(events, access, kept)
		if err := mergeReports(ctx, tx, reports); err != nil {
			return err
		}
		limited := map[uuid.UUID]callKey{}
		for _, report := range reports {
			wake = wake || report.wakes(access)
			if report.call != nil && report.key.limited() {
				limited[report.key.ID] = report.key
			}
		}
		return noteUsedByKeys(ctx, tx, limited)
	})
	if err == nil && wake {
		c.Wake()
	}
	return err
}

// roomReport is what events say about a room.
type roomReport struct {
	room   livekit.Room
	key    callKey
	events []livekit.Event

	call    *Call // nil: the events begin none
	stopped bool  // somebody has come, although the portal has ended the call in a room of this name
}

// byRoom returns the reports of events about keys that exist, by the id of the room.
func byRoom(events []livekit.Event, access callAccess, kept map[uuid.UUID]bool) map[string]*roomReport {
	reports := map[string]*roomReport{}
	for _, e := range events {
		if !kept[e.Room.KeyID] {
			continue
		}
		report := reports[e.Room.ID]
		if report == nil {
			report = &roomReport{room: e.Room, key: access.keys[e.Room.KeyID]}
			reports[e.Room.ID] = report
		}
		report.events = append(report.events, e)
	}
	return reports
}

// merge merges the events into a call of the room.
func (r *roomReport) merge(call *Call, now time.Time) {
	r.call = call
	for _, e := range r.events {
		stale := now.Sub(e.CreatedAt) > staleEvent
		switch e = plausible(e, now); {
		case e.Finished:
			call.finish(e.CreatedAt)
		case e.Left:
			call.leave(e.Visitor, e.CreatedAt)
		default:
			call.join(e.Visitor, stale)
			r.stopped = r.stopped || call.Ending != ""
		}
	}
}

// wakes reports whether a round may have something to end.
func (r *roomReport) wakes(access callAccess) bool {
	return r.stopped || r.call != nil && r.call.Open() && (r.key.limited() || access.denies(r.call) != "")
}

// begins reports whether an event can begin a call.
func (r *roomReport) begins(now time.Time) bool {
	return slices.ContainsFunc(r.events, func(e livekit.Event) bool { return !e.Finished && now.Sub(e.CreatedAt) <= staleEvent })
}

// plausible returns an event with times that it can have: a signed event can have others, and no
// call is older than calls are kept.
func plausible(e livekit.Event, now time.Time) livekit.Event {
	e.CreatedAt = plausibleTime(e.CreatedAt, now)
	if e.Finished {
		return e
	}
	joined := plausibleTime(e.Visitor.JoinedAt, e.CreatedAt)
	if created := plausibleTime(e.Room.CreatedAt, e.CreatedAt); created.Equal(e.Room.CreatedAt) && joined.Before(created.Add(-db.MaxClockSkew)) {
		joined = e.CreatedAt
	}
	e.Visitor.JoinedAt = joined
	return e
}

// plausibleTime returns when a call began or ended according to LiveKit, or now if that cannot be,
// even if its clock is wrong.
func plausibleTime(at, now time.Time) time.Time {
	if at.After(now.Add(time.Hour)) || at.Before(now.Add(-CallsKept)) {
		return now
	}
	return at
}

// mergeReports merges reports, by the id of the room, into the calls of the rooms. It locks calls
// before it changes totals, as the rounds do.
func mergeReports(ctx context.Context, tx db.Tx, reports map[string]*roomReport) error {
	now := tx.Now()
	var changes []callChange
	for waiting := slices.Sorted(maps.Keys(reports)); len(waiting) > 0; {
		found, err := lockCalls(ctx, tx, "room_id IN (?)", bun.List(waiting))
		if err != nil {
			return err
		}
		for i := range found {
			after := found[i].clone()
			reports[after.RoomID].merge(&after, now)
			changes = append(changes, callChange{&found[i], &after})
		}
		waiting = slices.DeleteFunc(waiting, func(room string) bool { return reports[room].call != nil || !reports[room].begins(now) })
		inserted, err := beginReported(ctx, tx, reports, waiting)
		if err != nil {
			return err
		}
		changes = append(changes, inserted...)
		// Another transaction may have inserted some of the calls in the meantime.
		waiting = slices.DeleteFunc(waiting, func(room string) bool { return reports[room].call != nil || reports[room].stopped })
	}
	return saveCalls(ctx, tx, changes...)
}

// beginReported inserts the calls that reports about these rooms begin. The reports whose rooms
// have another call by now get none.
func beginReported(ctx context.Context, tx db.Tx, reports map[string]*roomReport, rooms []string) ([]callChange, error) {
	var names []string
	for _, room := range rooms {
		names = append(names, reports[room].room.Name)
	}
	stopped, err := stoppedCalls(ctx, tx, names, tx.Now())
	if err != nil {
		return nil, err
	}
	var begun []Call
	for _, room := range rooms {
		report := reports[room]
		if report.stopped = stopped[report.room.Name] != nil; report.stopped {
			continue
		}
		call := newCall(report.room, report.key.AccountID)
		report.merge(&call, tx.Now())
		report.call = nil
		begun = append(begun, call)
	}
	inserted, err := insertRows(ctx, tx, begun)
	for _, change := range inserted {
		reports[change.after.RoomID].call = change.after
	}
	return inserted, err
}

// stoppedCalls returns the calls that the portal has ended, or is about to end, in rooms of these
// names while their tokens may be valid.
func stoppedCalls(ctx context.Context, db bun.IDB, names []string, now time.Time) (map[string]*Call, error) {
	stopped := map[string]*Call{}
	for batch := range slices.Chunk(names, value.MaintenanceBatch) {
		var found []*Call
		err := db.NewSelect().Model(&found).Where("call.room_name IN (?) AND call.ending IS NOT NULL", bun.List(batch)).
			Where("call.ended_at IS NULL OR call.ended_at > ?", now.Add(-watchLife)).Scan(ctx)
		if err != nil {
			return nil, err
		}
		for _, call := range found {
			stopped[call.RoomName] = call
		}
	}
	return stopped, nil
}

// Wake starts a round, unless one has just ended.
func (c *Calls) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// newCall returns a call without a start.
func newCall(room livekit.Room, accountID uuid.UUID) Call {
	return Call{ID: value.NewID(), AccountID: accountID, AgentID: room.AgentID, KeyID: room.KeyID, RoomID: room.ID, RoomName: room.Name}
}

// lockCalls returns the calls that match and locks their rows, in an order in which transactions do
// not wait for each other.
func lockCalls(ctx context.Context, tx db.Tx, where string, args ...any) ([]Call, error) {
	calls := []Call{}
	query := tx.NewSelect().Model(&calls).Where(where, args...).OrderExpr("room_id")
	return calls, tx.DB.Locked(query, "UPDATE").Scan(ctx)
}

// insertCalls inserts calls whose rooms have none yet, unless their keys were deleted.
func insertCalls(ctx context.Context, tx db.Tx, calls ...Call) error {
	var keys []uuid.UUID
	for _, call := range calls {
		keys = append(keys, call.KeyID)
	}
	if err := tx.LockAccountsTable(ctx, calls[0].AccountID); err != nil {
		return err
	}
	kept, err := tx.KeepKeys(ctx, keys)
	if err != nil {
		return err
	}
	inserted, err := insertRows(ctx, tx, slices.DeleteFunc(calls, func(call Call) bool { return !kept[call.KeyID] }))
	if err != nil {
		return err
	}
	return saveCalls(ctx, tx, inserted...)
}

// insertRows inserts the rows of calls whose rooms have none yet, and returns those. The caller
// saves these changes.
func insertRows(ctx context.Context, tx db.Tx, calls []Call) (inserted []callChange, err error) {
	if len(calls) == 0 {
		return nil, nil
	}
	for i := range calls {
		calls[i].Unrecorded = !calls[i].Open() && calls[i].EndReason.byAccess()
	}
	// In this order transactions do not wait for each other.
	slices.SortFunc(calls, func(a, b Call) int { return cmp.Compare(a.RoomID, b.RoomID) })
	var ids []uuid.UUID
	err = tx.NewInsert().Model(&calls).On("CONFLICT (room_id) DO NOTHING").Returning("id").Scan(ctx, &ids)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	for i := range calls {
		if slices.Contains(ids, calls[i].ID) {
			inserted = append(inserted, callChange{nil, &calls[i]})
		}
	}
	return inserted, nil
}

// callChange is a call before and after a change; before is nil for a new one.
type callChange struct{ before, after *Call }

// saveCalls writes changed calls, queues their events and corrects the totals.
func saveCalls(ctx context.Context, tx db.Tx, changes ...callChange) error {
	changes = slices.DeleteFunc(changes, func(c callChange) bool { return c.before != nil && reflect.DeepEqual(*c.before, *c.after) })
	for _, change := range changes {
		call := change.after
		switch {
		case change.before == nil:
			continue
		case call.Open():
			call.Unrecorded = false
		case change.before.Open():
			call.Unrecorded = call.EndReason.byAccess()
		}
		// What the portal has ended does not go on, and LiveKit has reported the end.
		call.Final = call.Final || call.Ending != "" && call.exactEnd()
		err := tx.Update(ctx, call, "user_id", "started_at", "ended_at", "end_reason", "exact", "final", "ending", "unseen_since", "visitors", "unrecorded")
		if err != nil {
			return err
		}
	}
	if err := announce(ctx, tx, changes); err != nil {
		return err
	}
	return addCallTotals(ctx, tx, changes)
}

// announce queues the events of calls that have started, and of those whose end is final.
func announce(ctx context.Context, tx db.Tx, changes []callChange) error {
	for _, change := range changes {
		call := change.after
		var events []record.Event
		if change.before == nil {
			events = append(events, record.Event{Type: record.EventCallStarted, ID: call.ID})
		}
		if call.Final && (change.before == nil || !change.before.Final) {
			events = append(events, record.Event{Type: record.EventCallEnded, ID: call.ID})
		}
		if err := record.FanOut(ctx, tx, record.GroupCalls, call.AccountID, events...); err != nil {
			return err
		}
	}
	return nil
}

// addCallTotals adds what changes of calls mean for the totals of their keys and accounts.
func addCallTotals(ctx context.Context, tx db.Tx, changes []callChange) error {
	type place struct {
		subject uuid.UUID
		day     time.Time
	}
	sums := map[place]callDay{}
	add := func(call *Call, sign int64) {
		if call == nil {
			return
		}
		for day, part := range call.days() {
			for _, subject := range []uuid.UUID{call.KeyID, call.AccountID} {
				sum := sums[place{subject, day}]
				sum.calls += sign * part.calls
				sum.seconds += sign * part.seconds
				sums[place{subject, day}] = sum
			}
		}
	}
	for _, change := range changes {
		add(change.before, -1)
		add(change.after, 1)
	}
	var rows []callTotal
	for at, sum := range sums {
		if sum != (callDay{}) {
			rows = append(rows, callTotal{SubjectID: at.subject, Day: at.day, Calls: sum.calls, Seconds: sum.seconds})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	// In this order transactions do not wait for each other.
	slices.SortFunc(rows, func(a, b callTotal) int {
		return cmp.Or(value.CompareIDs(a.SubjectID, b.SubjectID), a.Day.Compare(b.Day))
	})
	_, err := tx.NewInsert().Model(&rows).On("CONFLICT (subject_id, day) DO UPDATE").
		Set("calls = total.calls + excluded.calls, seconds = total.seconds + excluded.seconds").Exec(ctx)
	return err
}

// OpenCalls is the number of calls that were opened with tokens of a key and go on.
type OpenCalls struct {
	Known bool // false if LiveKit has not answered for a while
	Count int
}

// knownFor is how long a list of rooms describes the calls: longer than the time between two.
const knownFor = time.Minute

// Open returns the calls of one of the account's keys, or nil without a LiveKit server.
func (c *Calls) Open(ctx context.Context, accountID, keyID uuid.UUID) (*OpenCalls, error) {
	return c.open(ctx, "api_key_id = ?", keyID, accountID)
}

// OpenOfAgent is [Calls.Open] for an agent.
func (c *Calls) OpenOfAgent(ctx context.Context, accountID, agentID uuid.UUID) (*OpenCalls, error) {
	return c.open(ctx, "agent_id = ?", agentID, accountID)
}

func (c *Calls) open(ctx context.Context, where string, id, accountID uuid.UUID) (*OpenCalls, error) {
	if c.liveKit == nil {
		return nil, nil //nolint:nilnil // no calls
	}
	open := &OpenCalls{}
	listed, err := c.ListedAt(ctx)
	if err == nil {
		open.Known = c.db.Now().Sub(listed) < knownFor
		var count int64
		count, err = c.db.NewSelect().Model((*Call)(nil)).Where("ended_at IS NULL AND account_id = ?", accountID).Where(where, id).Count(ctx)
		open.Count = int(count)
	}
	return open, value.Failed("count open calls", err)
}

// CountOpen returns the number of calls of all accounts.
func (c *Calls) CountOpen(ctx context.Context) (int64, error) {
	n, err := c.db.NewSelect().Model((*Call)(nil)).Where("ended_at IS NULL").Count(ctx)
	return n, value.Failed("count calls", err)
}

// ListedAt returns when LiveKit last answered with a list of rooms; zero: never.
func (c *Calls) ListedAt(ctx context.Context) (time.Time, error) {
	var listed bun.NullTime
	err := c.db.NewSelect().Table("call_rounds").Column("listed_at").Scan(ctx, &listed)
	return listed.Time, value.Failed("read when calls were listed", err)
}

// Used returns how many calls of an account, or of one of its keys unless keyID is zero, go on, and
// the seconds of this month.
func (c *Calls) Used(ctx context.Context, accountID, keyID uuid.UUID) (Used, error) {
	used, err := UsedCalls(ctx, c.db, c.db, accountID, keyID, c.db.Now())
	return used, value.Failed("read the calls of this month", err)
}

// UsedByKeys returns what [Calls.Used] returns for each of these keys of an account.
func (c *Calls) UsedByKeys(ctx context.Context, accountID uuid.UUID, keyIDs []uuid.UUID) (map[uuid.UUID]Used, error) {
	seconds, err := c.SecondsByKey(ctx, keyIDs, monthOf(c.db.Now()))
	if err != nil {
		return nil, err
	}
	used := map[uuid.UUID]Used{}
	for _, id := range keyIDs {
		used[id] = Used{Seconds: seconds[id]}
	}
	var open []Call
	err = c.db.NewSelect().Model(&open).Column("api_key_id", "started_at").Where("ended_at IS NULL AND account_id = ?", accountID).Scan(ctx)
	now := c.db.Now()
	for _, call := range open {
		if of, wanted := used[call.KeyID]; wanted {
			call.StartedAt = db.Later(call.StartedAt, monthOf(now))
			used[call.KeyID] = Used{Calls: of.Calls + 1, Seconds: of.Seconds + call.Seconds(now)}
		}
	}
	return used, value.Failed("read the open calls of keys", err)
}

// SecondsByKey returns how long ended calls of these keys lasted on the days since the first one.
func (c *Calls) SecondsByKey(ctx context.Context, keyIDs []uuid.UUID, first time.Time) (map[uuid.UUID]int64, error) {
	seconds := map[uuid.UUID]int64{}
	for batch := range slices.Chunk(keyIDs, value.MaintenanceBatch) {
		var totals []callTotal
		err := c.db.NewSelect().Model(&totals).Column("total.subject_id").ColumnExpr("CAST(sum(total.seconds) AS bigint) AS seconds").
			Where("total.subject_id IN (?) AND total.day >= ?", bun.List(batch), first).GroupExpr("total.subject_id").Scan(ctx)
		if err != nil {
			return nil, value.Failed("read the minutes of keys", err)
		}
		for _, total := range totals {
			seconds[total.SubjectID] = total.Seconds
		}
	}
	return seconds, nil
}

// SecondsByDay returns how long ended calls of a key lasted on each day since the first one.
func (c *Calls) SecondsByDay(ctx context.Context, keyID uuid.UUID, first time.Time) (map[time.Time]int64, error) {
	var totals []callTotal
	err := c.db.NewSelect().Model(&totals).Column("day", "seconds").Where("total.subject_id = ? AND total.day >= ?", keyID, first).Scan(ctx)
	seconds := map[time.Time]int64{}
	for _, total := range totals {
		seconds[total.Day.UTC()] = total.Seconds
	}
	return seconds, value.Failed("read the minutes of a key", err)
}

// End ends one of the account's calls for a user, or for an operator any call if accountID is zero,
// and records the activity. If LiveKit does not answer, the next round ends the call. If the call
// has ended before, it only cannot go on any more. The error may be [value.ErrCallNotFound].
func (c *Calls) End(ctx context.Context, accountID, id uuid.UUID, actor record.Actor) (Call, error) {
	reason := EndedInPortal
	if actor.Kind == record.ActorOperator {
		reason = EndedByOperator
	}
	call, err := db.InTx(ctx, c.db, "end call", func(ctx context.Context, tx db.Tx) (Call, error) {
		found, err := findCall(ctx, tx, accountID, id)
		if err != nil {
			return found, err
		}
		if err := tx.LockAccountsTable(ctx, found.AccountID); err != nil {
			return found, err
		}
		calls, err := lockCalls(ctx, tx, "call.id = ?", id)
		if err != nil || len(calls) == 0 {
			return found, cmp.Or(err, value.ErrCallNotFound)
		}
		call := calls[0]
		if call.Final || call.Ending == reason {
			return call, nil
		}
		before := call.clone()
		call.Ending = reason
		if err := saveCalls(ctx, tx, callChange{&before, &call}); err != nil || !call.Open() {
			return call, err
		}
		label, err := keyLabel(ctx, tx, call.KeyID)
		if err != nil {
			return call, err
		}
		return call, record.Add(ctx, tx, actor, record.Activity{AccountID: call.AccountID, Action: record.ActionCallEnded, SubjectID: &call.KeyID, Label: label})
	})
	if err != nil || !call.Open() || c.liveKit == nil {
		return call, err
	}
	if err := c.endNow(ctx, call); err != nil {
		c.db.Logger.WarnContext(ctx, "a call ends later, because LiveKit does not answer", slog.Any("error", err))
	}
	c.Wake()
	return call, nil
}

// endNow ends one call before the next round does.
func (c *Calls) endNow(ctx context.Context, call Call) error {
	ctx, cancel := context.WithTimeout(ctx, endNowTimeout)
	defer cancel()
	ended, err := c.liveKit.EndRoom(ctx, call.RoomName)
	if err != nil || !ended {
		return err
	}
	return c.markEnded(ctx, []uuid.UUID{call.ID}, c.db.Now())
}

// endNowTimeout limits how long a page waits for LiveKit.
const endNowTimeout = 2 * time.Second

// markEnded records that the portal has ended calls at a time, unless LiveKit has reported it.
func (c *Calls) markEnded(ctx context.Context, ids []uuid.UUID, at time.Time) error {
	return c.change(ctx, ids, func(call *Call) {
		if call.Open() {
			call.end(at, cmp.Or(call.Ending, EndUnknown))
		}
	})
}

// change changes calls in transactions of a bounded size.
func (c *Calls) change(ctx context.Context, ids []uuid.UUID, change func(*Call)) error {
	for batch := range slices.Chunk(ids, callBatch) {
		err := c.db.InTx(ctx, "change calls", func(ctx context.Context, tx db.Tx) error {
			if err := tx.LockAccountsTable(ctx, uuid.Nil); err != nil {
				return err
			}
			calls, err := lockCalls(ctx, tx, "call.id IN (?)", bun.List(batch))
			if err != nil {
				return err
			}
			changes := make([]callChange, len(calls))
			for i := range calls {
				after := calls[i].clone()
				change(&after)
				changes[i] = callChange{&calls[i], &after}
			}
			return saveCalls(ctx, tx, changes...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// callBatch is how many calls one transaction changes.
const callBatch = 200

// findCall returns a call of the account, or of any account if the id is zero, or
// [value.ErrCallNotFound].
func findCall(ctx context.Context, conn bun.IDB, accountID, id uuid.UUID) (Call, error) {
	var call Call
	err := conn.NewSelect().Model(&call).Where("call.id = ?", id).
		Apply(db.WhereIf(accountID != uuid.Nil, "call.account_id = ?", accountID)).Scan(ctx)
	return call, value.NotFound("find call", err, value.ErrCallNotFound)
}

// CallPage selects calls.
type CallPage struct {
	AccountID      uuid.UUID // zero: all accounts, for operators
	KeyID, AgentID uuid.UUID // zero: any
	From, Until    time.Time // of the start; Until is exclusive
	After          CallPlace // the last call of the previous page; zero for the first page
	OldestFirst    bool
	Limit          int // the maximum number of calls
}

// CallPlace is the place of a call in a list.
type CallPlace struct {
	StartedAt time.Time
	ID        uuid.UUID
}

// Place returns the place of the call.
func (c *Call) Place() CallPlace { return CallPlace{c.StartedAt, c.ID} }

// String returns the place as [ParseCallPlace] reads it.
func (p CallPlace) String() string {
	return strconv.FormatInt(p.StartedAt.UnixMicro(), 36) + "_" + p.ID.String()
}

// ParseCallPlace returns the place of a call from its text, and reports false for any other text.
func ParseCallPlace(text string) (CallPlace, bool) {
	at, id, _ := strings.Cut(text, "_")
	micros, err := strconv.ParseInt(at, 36, 64)
	parsed, ok := value.ParseID(id)
	started := time.UnixMicro(micros).UTC()
	return CallPlace{started, parsed}, err == nil && ok && started.Year() > 0 && started.Year() < 10_000
}

// List returns a page of calls by their start, the newest first unless the page says otherwise.
func (c *Calls) List(ctx context.Context, page CallPage) ([]Call, error) {
	order, beyond := "DESC", "<"
	if page.OldestFirst {
		order, beyond = "ASC", ">"
	}
	calls := []Call{}
	err := c.db.NewSelect().Model(&calls).ColumnExpr("?TableColumns").
		ColumnExpr("COALESCE(agent.name, '') AS agent_name, COALESCE(k.label, '') AS key_label").
		Join("LEFT JOIN agents AS agent ON agent.id = call.agent_id AND agent.account_id = call.account_id").
		Join("LEFT JOIN api_keys AS k ON k.id = call.api_key_id").
		Apply(
			db.WhereIf(page.AccountID != uuid.Nil, "call.account_id = ?", page.AccountID),
			db.WhereIf(page.KeyID != uuid.Nil, "call.api_key_id = ?", page.KeyID),
			db.WhereIf(page.AgentID != uuid.Nil, "call.agent_id = ?", page.AgentID),
			db.WhereIf(!page.From.IsZero(), "call.started_at >= ?", page.From),
			db.WhereIf(!page.Until.IsZero(), "call.started_at < ?", page.Until),
			db.WhereIf(page.After != CallPlace{}, "(call.started_at, call.id) ? (?, ?)", bun.Safe(beyond), page.After.StartedAt, page.After.ID),
		).
		OrderExpr("call.started_at ?0, call.id ?0", bun.Safe(order)).Limit(int64(page.Limit)).Scan(ctx)
	return calls, value.Failed("list calls", err)
}

// Find returns one of the account's calls, or [value.ErrCallNotFound].
func (c *Calls) Find(ctx context.Context, accountID, id uuid.UUID) (Call, error) {
	return findCall(ctx, c.db, accountID, id)
}

func keyLabel(ctx context.Context, tx db.Tx, id uuid.UUID) (label string, err error) {
	err = tx.NewSelect().Table("api_keys").Column("label").Where("id = ?", id).Scan(ctx, &label)
	return label, value.NoRows(err, nil)
}
