package calls

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"golang.org/x/sync/errgroup"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

const (
	// endTimeout limits the requests to LiveKit that end calls at the same time.
	endTimeout = 4 * time.Second
	// maxEnding is the number of calls that are ended at the same time.
	maxEnding = 8
	// maxEndsOfAccount limits the calls of an account that are ended before those of others
	// get another turn.
	maxEndsOfAccount = 500
	// endedCallsInterval is the shortest time between two activities about the ended calls of
	// one key, agent or account. A client with a valid token can join again and again.
	endedCallsInterval = time.Minute
	// maxEndedSubjects limits the activities of a round about ended calls.
	maxEndedSubjects = 100
)

// callEnd is a call that the portal ends.
type callEnd struct {
	call   Call // without an id if no list has seen it
	reason EndReason
	// end ends a room whose call has ended before; nil: a room with a call.
	end func(ctx context.Context, name string) error
}

// endPass ends the open calls that may not go on. It reads the table of calls, so it does not
// depend on LiveKit's list.
type endPass struct {
	*Calls

	now      time.Time  // by the database's clock
	listedAt *time.Time // when LiveKit last listed its rooms
	access   callAccess
	found    map[string]callEnd // by the id of the room
	ended    map[uuid.UUID]int  // how many are found, by the account
	more     bool               // an account has more
}

// endOpen ends the open calls that may not go on, those that a user or an operator ends, and then
// those beyond a limit. It reports whether an account has more of them.
func (c *Calls) endOpen(ctx context.Context, round callRound, now time.Time) (more bool, err error) {
	p := &endPass{Calls: c, now: now, listedAt: round.ListedAt, found: map[string]callEnd{}, ended: map[uuid.UUID]int{}}
	limited, err := p.find(ctx)
	if err == nil {
		err = p.endAll(ctx, slices.Collect(maps.Values(p.found)))
		clear(p.found)
		err = errors.Join(err, p.addBeyondLimits(ctx, limited), p.endAll(ctx, slices.Collect(maps.Values(p.found))))
	}
	return p.more, errors.Join(value.Failed("end calls", err), value.Failed("record ended calls", c.recordEnded(ctx)))
}

// find finds the calls that may not go on and those that are ended already, and returns the keys
// with limits, by their ids and those of accounts with limits. The work grows with the keys and
// agents that have open calls.
func (p *endPass) find(ctx context.Context) (limited map[uuid.UUID]callKey, err error) {
	if err := p.addOpen(ctx, uuid.Nil, 0, func(call *Call) EndReason { return call.Ending }, "call.ending IS NOT NULL"); err != nil {
		return nil, err
	}
	var pairs []Call
	err = p.db.NewSelect().Model(&pairs).Distinct().Column("account_id", "api_key_id", "agent_id").Where("call.ended_at IS NULL").Scan(ctx)
	if err != nil {
		return nil, err
	}
	keys, agents := sortedIDsOf(pairs, func(c Call) uuid.UUID { return c.KeyID }), sortedIDsOf(pairs, func(c Call) uuid.UUID { return c.AgentID })
	if p.access, err = readCallAccess(ctx, p.db, p.db, keys, agents); err != nil {
		return nil, err
	}
	limited = map[uuid.UUID]callKey{}
	for i := range pairs {
		key, known := p.access.keys[pairs[i].KeyID]
		if !known {
			continue
		}
		if reason := p.access.denies(&pairs[i]); reason != "" {
			err := p.addOpen(ctx, key.AccountID, 0, always(reason), "call.api_key_id = ? AND call.agent_id = ?", key.ID, pairs[i].AgentID)
			if err != nil {
				return nil, err
			}
			continue
		}
		if !key.Limits.IsZero() {
			limited[key.ID] = key
		}
		if !key.AccountLimits.IsZero() {
			limited[key.AccountID] = key
		}
	}
	return limited, nil
}

func always(reason EndReason) func(*Call) EndReason {
	return func(*Call) EndReason { return reason }
}

func sortedIDsOf(calls []Call, id func(Call) uuid.UUID) []uuid.UUID {
	ids := make([]uuid.UUID, len(calls))
	for i, call := range calls {
		ids[i] = id(call)
	}
	slices.SortFunc(ids, value.CompareIDs)
	return slices.Compact(ids)
}

// addOpen adds open calls that match, of an account or, if it is zero, of all, the oldest first and
// without so many of them, with their reasons.
func (p *endPass) addOpen(ctx context.Context, accountID uuid.UUID, without int, reason func(*Call) EndReason, where string, args ...any) error {
	var calls []Call
	query := p.db.NewSelect().Model(&calls).
		Column("id", "account_id", "api_key_id", "agent_id", "room_id", "room_name", "started_at", "ending", "unseen_since").
		Where("call.ended_at IS NULL").Where(where, args...)
	if accountID != uuid.Nil {
		query = query.Where("call.account_id = ?", accountID).OrderExpr("call.started_at, call.id").
			Limit(maxEndsOfAccount + 1).Offset(int64(without))
	}
	err := query.Scan(ctx)
	for i := range calls {
		p.add(&calls[i], reason(&calls[i]))
	}
	return err
}

// add adds a call to end, or notes that its account has more than are ended now. Access comes
// before the other reasons.
func (p *endPass) add(call *Call, reason EndReason) {
	_, found := p.found[call.RoomID]
	switch {
	case found && !reason.byAccess():
		return
	case !found && p.ended[call.AccountID] >= maxEndsOfAccount:
		p.more = true
		return
	case !found:
		p.ended[call.AccountID]++
	}
	p.found[call.RoomID] = callEnd{call: *call, reason: reason}
}

// addBeyondLimits adds the calls that end because of a limit of a key or an account: all if a
// month's minutes are used up, those that are too long, and the newest if there are too many.
func (p *endPass) addBeyondLimits(ctx context.Context, limited map[uuid.UUID]callKey) error {
	for subject, key := range limited {
		limits, noted := key.AccountLimits, uuid.Nil
		where, args := "call.ending IS NULL", []any(nil) // the others end already
		if subject == key.ID {
			limits, noted = key.Limits, key.ID
			where, args = where+" AND call.api_key_id = ?", []any{key.ID}
		}
		var errs []error
		if limits.MinutesPerMonth > 0 {
			used, err := p.noteUsed(ctx, key, noted, limits)
			if err == nil && used.Seconds >= 60*limits.MinutesPerMonth {
				err = p.addOpen(ctx, key.AccountID, 0, always(EndLimitPerMonth), where, args...)
			}
			errs = append(errs, err)
		}
		if limits.MinutesPerCall > 0 {
			begun := p.now.Add(-time.Duration(limits.MinutesPerCall) * time.Minute)
			errs = append(errs, p.addOpen(ctx, key.AccountID, 0, always(EndLimitPerCall), where+" AND call.started_at <= ?", append(args, begun)...))
		}
		if limits.Calls > 0 {
			without := int(limits.Calls) + p.foundOf(subject) // which are the oldest
			errs = append(errs, p.addOpen(ctx, key.AccountID, without, always(EndLimitCalls), where, args...))
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// foundOf returns how many calls of a key or an account are found.
func (p *endPass) foundOf(subject uuid.UUID) (n int) {
	for _, end := range p.found {
		if end.call.KeyID == subject || end.call.AccountID == subject {
			n++
		}
	}
	return n
}

// noteUsed returns what an account, or one of its keys unless keyID is zero, has used, and records
// when it approaches or reaches its limit.
func (p *endPass) noteUsed(ctx context.Context, key callKey, keyID uuid.UUID, limits value.Limits) (Used, error) {
	used, err := UsedCalls(ctx, p.db, p.db, key.AccountID, keyID, p.now)
	if err != nil {
		return used, err
	}
	reached := 0
	for _, part := range limitPercents {
		if 100*used.Seconds >= part.percent*60*limits.MinutesPerMonth {
			reached++
		}
	}
	if reached == 0 {
		return used, nil
	}
	noted, err := p.db.NewSelect().Model((*limitNotice)(nil)).Where("subject_id = ? AND month = ?", cmp.Or(keyID, key.AccountID), monthOf(p.now)).Count(ctx)
	if err != nil || int(noted) >= reached {
		return used, err
	}
	return used, p.db.InTx(ctx, "note used minutes", func(ctx context.Context, tx db.Tx) error { return noteUsedMinutes(ctx, tx, key) })
}

// interleaved orders items so that the accounts take turns, with at most n of each account.
func interleaved[T any](items []T, accountOf func(T) uuid.UUID, n int) []T {
	type placed struct {
		item  T
		place int
	}
	ofAccount := map[uuid.UUID]int{}
	var all []placed
	for _, item := range items {
		account := accountOf(item)
		if ofAccount[account] < n {
			all = append(all, placed{item, ofAccount[account]})
			ofAccount[account]++
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.place, b.place) })
	ordered := make([]T, len(all))
	for i := range all {
		ordered[i] = all[i].item
	}
	return ordered
}

// endAll ends calls. First it writes why, so that LiveKit cannot report the end before.
func (p *endPass) endAll(ctx context.Context, ends []callEnd) error {
	ends = interleaved(ends, func(end callEnd) uuid.UUID { return end.call.AccountID }, maxEndsOfAccount)
	byReason := map[EndReason][]uuid.UUID{}
	for _, end := range ends {
		if end.end == nil && end.call.ID != uuid.Nil && end.call.Open() && end.call.Ending != end.reason {
			byReason[end.reason] = append(byReason[end.reason], end.call.ID)
		}
	}
	for reason, ids := range byReason {
		for batch := range slices.Chunk(ids, value.WriteBatch) {
			// In the order of lockCalls.
			open := p.db.Locked(p.db.NewSelect().Model((*Call)(nil)).Column("id").
				Where("id IN (?) AND ended_at IS NULL", bun.List(batch)).OrderExpr("room_id"), "UPDATE")
			_, err := p.db.NewUpdate().Model((*Call)(nil)).Set("ending = ?", reason).Where("id IN (?)", open).Exec(ctx)
			if err != nil {
				return value.Failed("write why calls end", err)
			}
		}
	}
	limited, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	// One that fails does not stop the others.
	var group errgroup.Group
	group.SetLimit(maxEnding)
	var mu sync.Mutex
	var disconnected, empty []uuid.UUID
	var unseen []Call
	for _, end := range ends {
		group.Go(func() error {
			if end.end != nil {
				return end.end(limited, end.call.RoomName)
			}
			ended, err := p.liveKit.EndRoom(limited, end.call.RoomName)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case !ended && err != nil, !ended && end.call.ID == uuid.Nil:
			case end.call.ID == uuid.Nil:
				end.call.ID, end.call.Ending = value.NewID(), end.reason
				end.call.end(p.now, end.reason)
				unseen = append(unseen, end.call)
			case ended:
				disconnected = append(disconnected, end.call.ID)
			default:
				empty = append(empty, end.call.ID)
			}
			return err
		})
	}
	err := group.Wait()
	return errors.Join(err, p.saveEnds(context.WithoutCancel(ctx), disconnected, empty, unseen))
}

// saveEnds saves that calls have ended: those with visitors whom the portal has disconnected,
// those without, and those that no list has seen.
func (p *endPass) saveEnds(ctx context.Context, disconnected, empty []uuid.UUID, unseen []Call) error {
	for _, ids := range [][]uuid.UUID{disconnected, empty} {
		slices.SortFunc(ids, value.CompareIDs)
	}
	if err := p.markEnded(ctx, disconnected, p.now); err != nil {
		return err
	}
	err := p.change(ctx, empty, func(call *Call) {
		if !call.Open() {
			return
		}
		reason := EndUnknown // the visitor had left before
		if call.Ending == EndedInPortal || call.Ending == EndedByOperator {
			reason = call.Ending
		}
		call.end(earlier(call.lastSeen(p.listedAt), p.now), reason)
	})
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(unseen, callBatch) {
		err := p.db.InTx(ctx, "insert ended calls", func(ctx context.Context, tx db.Tx) error {
			return insertCalls(ctx, tx, batch...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// endedGroup is calls that the portal has ended and that no activity counts yet.
type endedGroup struct {
	AccountID uuid.UUID
	EndReason EndReason
	KeyID     uuid.UUID `bun:"api_key_id"`
	AgentID   uuid.UUID
}

// subject returns the key, agent or account whose change has ended the calls.
func (g endedGroup) subject() uuid.UUID {
	switch g.EndReason {
	case EndAccountDisabled:
		return g.AccountID
	case EndAgentRemoved, EndAgentPaused:
		return g.AgentID
	default:
		return g.KeyID
	}
}

// recordEnded records activities with the number of ended calls, by the actor who has caused their
// end: at most one within [endedCallsInterval] for each key, agent or account.
func (c *Calls) recordEnded(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	limited, cancel := context.WithTimeout(ctx, c.db.Timeout)
	defer cancel()
	var groups []endedGroup
	err := c.db.NewSelect().Model((*Call)(nil)).Column("account_id", "end_reason", "api_key_id", "agent_id").
		Where("unrecorded").GroupExpr("account_id, end_reason, api_key_id, agent_id").OrderExpr("min(ended_at)").
		Limit(value.MaintenanceBatch).Scan(limited, &groups)
	if err != nil {
		return err
	}
	done := map[uuid.UUID]bool{}
	for _, group := range groups {
		if done[group.subject()] || len(done) >= maxEndedSubjects {
			continue
		}
		done[group.subject()] = true
		if err := c.db.InTx(ctx, "record ended calls", group.record); err != nil {
			return err
		}
	}
	return nil
}

// record counts the calls of the group in an activity.
func (g endedGroup) record(ctx context.Context, tx db.Tx) error {
	subject := g.subject()
	if err := tx.LockAccountsTable(ctx, g.AccountID); err != nil {
		return err
	}
	about := func() *bun.SelectQuery {
		return tx.NewSelect().Model((*record.Activity)(nil)).Where("account_id = ? AND subject_id = ?", g.AccountID, subject)
	}
	recent, err := about().Where("action = ? AND at > ?", record.ActionCallsEnded, tx.Now().Add(-endedCallsInterval)).Exists(ctx)
	if err != nil || recent {
		return err
	}
	query := tx.NewUpdate().Model((*Call)(nil)).Set("unrecorded = false").Where("unrecorded AND account_id = ?", g.AccountID)
	switch subject {
	case g.KeyID:
		query = query.Where("api_key_id = ? AND end_reason IN (?)", subject, bun.List([]EndReason{EndKeyRevoked, EndKeyExpired, EndKeyRestricted}))
	case g.AgentID:
		query = query.Where("agent_id = ? AND end_reason IN (?)", subject, bun.List([]EndReason{EndAgentRemoved, EndAgentPaused}))
	default:
		query = query.Where("end_reason = ?", EndAccountDisabled)
	}
	ended, err := value.Affected(query.Exec(ctx))
	if err != nil || ended == 0 {
		return err
	}
	var cause record.Activity
	if g.EndReason != EndKeyExpired {
		err = about().Model(&cause).Column("label", "actor_kind", "actor_id", "address").Where("action IN (?)", bun.List(record.EndingActions)).
			OrderExpr("id DESC").Limit(1).Scan(ctx)
	}
	actor := record.Actor{Kind: cause.ActorKind, Address: cause.Address}
	if cause.ActorID != nil {
		actor.ID = *cause.ActorID
	}
	if actor.Kind == "" { // the expiry, or an operator's own SQL
		actor = record.System
		cause.Label, err = keyLabel(ctx, tx, subject)
	}
	if err := value.NoRows(err, nil); err != nil {
		return err
	}
	return record.Add(ctx, tx, actor, record.Activity{
		AccountID: g.AccountID, Action: record.ActionCallsEnded, SubjectID: &subject, Label: cause.Label, Count: ended,
	})
}
