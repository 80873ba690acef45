package models

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"golang.org/x/sync/errgroup"
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
	left     map[uuid.UUID]int  // how many more calls of an account are ended
	more     bool               // an account has more
}

// endOpen ends the open calls that may not go on, those that a user or an operator ends, and those
// beyond a limit, and makes those final that ended long ago. It reports whether an account has more
// of them.
func (c *Calls) endOpen(ctx context.Context, round callRound, now time.Time) (more bool, err error) {
	p := &endPass{Calls: c, now: now, listedAt: round.ListedAt, found: map[string]callEnd{}, left: map[uuid.UUID]int{}}
	err = p.find(ctx)
	if err != nil {
		err = failed("find calls to end", err)
	} else {
		ends := make([]callEnd, 0, len(p.found))
		for _, end := range p.found {
			ends = append(ends, end)
		}
		err = p.endAll(ctx, ends)
	}
	return p.more, errors.Join(err, failed("record ended calls", c.recordEnded(ctx)))
}

// find finds the calls to end. The work grows with the keys and agents that have open calls, and
// with the calls of those that are limited or may not have any.
func (p *endPass) find(ctx context.Context) error {
	if err := p.addOpen(ctx, uuid.Nil, func(call *Call) EndReason { return call.Ending }, "call.ending IS NOT NULL"); err != nil {
		return err
	}
	var pairs []Call
	err := p.db.NewSelect().Model(&pairs).Distinct().Column("account_id", "api_key_id", "agent_id").Where("call.ended_at IS NULL").Scan(ctx)
	if err != nil {
		return err
	}
	if p.access, err = readCallAccess(ctx, p.db, p.db, sortedIDsOf(pairs, func(c Call) uuid.UUID { return c.KeyID }), sortedIDsOf(pairs, func(c Call) uuid.UUID { return c.AgentID })); err != nil {
		return err
	}
	limited := map[uuid.UUID]callKey{} // keys and accounts
	for _, pair := range pairs {
		key, known := p.access.keys[pair.KeyID]
		if !known {
			continue
		}
		if reason := p.access.denies(&pair); reason != "" {
			err := p.addOpen(ctx, pair.AccountID, func(*Call) EndReason { return reason }, "call.api_key_id = ? AND call.agent_id = ?", pair.KeyID, pair.AgentID)
			if err != nil {
				return err
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
	return p.addBeyondLimits(ctx, limited)
}

func sortedIDsOf(calls []Call, id func(Call) uuid.UUID) []uuid.UUID {
	ids := make([]uuid.UUID, len(calls))
	for i, call := range calls {
		ids[i] = id(call)
	}
	slices.SortFunc(ids, compareIDs)
	return slices.Compact(ids)
}

// openCalls returns the open calls that match, of an account or, if it is zero, of all, without
// their visitors, the oldest first.
func (c *Calls) openCalls(ctx context.Context, accountID uuid.UUID, limit int, where string, args ...any) (calls []Call, err error) {
	query := c.db.NewSelect().Model(&calls).
		Column("id", "account_id", "api_key_id", "agent_id", "room_id", "room_name", "started_at", "ending", "unseen_since").
		Where("call.ended_at IS NULL").OrderExpr("call.started_at")
	if accountID != uuid.Nil {
		query = query.Where("call.account_id = ?", accountID)
	}
	if where != "" {
		query = query.Where(where, args...)
	}
	if limit > 0 {
		query = query.Limit(int64(limit))
	}
	return calls, query.Scan(ctx)
}

// addOpen adds the open calls that match, with their reasons.
func (p *endPass) addOpen(ctx context.Context, accountID uuid.UUID, reason func(*Call) EndReason, where string, args ...any) error {
	limit := 0
	if accountID != uuid.Nil {
		limit = p.leftOf(accountID) + 1
	}
	calls, err := p.openCalls(ctx, accountID, limit, where, args...)
	for i := range calls {
		p.add(&calls[i], reason(&calls[i]))
	}
	return err
}

func (p *endPass) leftOf(accountID uuid.UUID) int {
	left, known := p.left[accountID]
	if !known {
		left = maxEndsOfAccount
	}
	return left
}

// add adds a call to end, or notes that its account has more than are ended now. Access comes
// before the other reasons.
func (p *endPass) add(call *Call, reason EndReason) {
	_, found := p.found[call.RoomID]
	switch left := p.leftOf(call.AccountID); {
	case found && !reason.byAccess():
		return
	case !found && left == 0:
		p.more = true
		return
	case !found:
		p.left[call.AccountID] = left - 1
	}
	p.found[call.RoomID] = callEnd{call: *call, reason: reason}
}

// addBeyondLimits adds the calls that end because of a limit of a key or an account.
func (p *endPass) addBeyondLimits(ctx context.Context, limited map[uuid.UUID]callKey) error {
	for subject, key := range limited {
		limits, noted := key.AccountLimits, uuid.Nil
		where, args := "", []any(nil)
		if subject == key.ID {
			limits, noted = key.Limits, key.ID
			where, args = "call.api_key_id = ?", []any{key.ID}
		}
		calls, err := p.openCalls(ctx, key.AccountID, 0, where, args...)
		if err != nil {
			return err
		}
		calls = slices.DeleteFunc(calls, func(call Call) bool { return p.access.denies(&call) != "" })
		if limits.MinutesPerMonth > 0 {
			used, err := p.noteUsed(ctx, key, noted, limits)
			if err != nil {
				return err
			}
			if used.Seconds >= 60*limits.MinutesPerMonth {
				for i := range calls {
					p.add(&calls[i], EndLimitPerMonth)
				}
				continue
			}
		}
		p.addBeyondLimit(calls, limits)
	}
	return nil
}

// addBeyondLimit adds the calls of a key or an account, the oldest first, that are too long or too
// many.
func (p *endPass) addBeyondLimit(calls []Call, limits Limits) {
	counted := int64(0)
	for i := range calls {
		call := &calls[i]
		if limits.MinutesPerCall > 0 && p.now.Sub(call.StartedAt) >= time.Duration(limits.MinutesPerCall)*time.Minute {
			p.add(call, EndLimitPerCall)
		}
		if _, ends := p.found[call.RoomID]; ends {
			continue
		}
		if counted++; limits.Calls > 0 && counted > limits.Calls {
			p.add(call, EndLimitCalls)
		}
	}
}

// noteUsed returns what an account, or one of its keys unless keyID is zero, has used, and records
// when it approaches or reaches its limit.
func (p *endPass) noteUsed(ctx context.Context, key callKey, keyID uuid.UUID, limits Limits) (CallsUsed, error) {
	used, err := usedCalls(ctx, p.db, p.db, key.AccountID, keyID, p.now)
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
	return used, p.db.InTx(ctx, "note used minutes", func(ctx context.Context, tx Tx) error { return noteUsedMinutes(ctx, tx, key) })
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
		for batch := range slices.Chunk(ids, writeBatch) {
			_, err := p.db.NewUpdate().Model((*Call)(nil)).Set("ending = ?", reason).
				Where("id IN (?) AND ended_at IS NULL", bun.List(batch)).Exec(ctx)
			if err != nil {
				return failed("write why calls end", err)
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
				end.call.ID, end.call.Ending = newID(), end.reason
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
	return errors.Join(err, p.recordEnds(context.WithoutCancel(ctx), disconnected, empty, unseen))
}

// recordEnds records that calls have ended: those with visitors whom the portal has disconnected,
// those without, and those that no list has seen.
func (p *endPass) recordEnds(ctx context.Context, disconnected, empty []uuid.UUID, unseen []Call) error {
	for _, ids := range [][]uuid.UUID{disconnected, empty} {
		slices.SortFunc(ids, compareIDs)
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
		err := p.db.InTx(ctx, "insert ended calls", func(ctx context.Context, tx Tx) error {
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
	limited, cancel := context.WithTimeout(ctx, c.db.timeout)
	defer cancel()
	var groups []endedGroup
	err := c.db.NewSelect().Model((*Call)(nil)).Column("account_id", "end_reason", "api_key_id", "agent_id").
		Where("unrecorded").GroupExpr("account_id, end_reason, api_key_id, agent_id").OrderExpr("min(ended_at)").
		Limit(maintenanceBatch).Scan(limited, &groups)
	if err != nil {
		return err
	}
	done := map[uuid.UUID]bool{}
	for _, group := range groups {
		if done[group.subject()] || len(done) >= maxEndedSubjects {
			continue
		}
		done[group.subject()] = true
		if err := c.db.InTx(ctx, "record ended calls", func(ctx context.Context, tx Tx) error { return recordEndedOf(ctx, tx, group) }); err != nil {
			return err
		}
	}
	return nil
}

func recordEndedOf(ctx context.Context, tx Tx, group endedGroup) error {
	subject := group.subject()
	if err := tx.lockAccountsTable(ctx, group.AccountID); err != nil {
		return err
	}
	about := func() *bun.SelectQuery {
		return tx.NewSelect().Model((*Activity)(nil)).Where("account_id = ? AND subject_id = ?", group.AccountID, subject)
	}
	recent, err := about().Where("action = ? AND at > ?", ActionCallsEnded, tx.Now().Add(-endedCallsInterval)).Exists(ctx)
	if err != nil || recent {
		return err
	}
	query := tx.NewUpdate().Model((*Call)(nil)).Set("unrecorded = false").Where("unrecorded AND account_id = ?", group.AccountID)
	switch subject {
	case group.KeyID:
		query = query.Where("api_key_id = ? AND end_reason IN (?)", subject, bun.List([]EndReason{EndKeyRevoked, EndKeyExpired, EndKeyRestricted}))
	case group.AgentID:
		query = query.Where("agent_id = ? AND end_reason IN (?)", subject, bun.List([]EndReason{EndAgentRemoved, EndAgentPaused}))
	default:
		query = query.Where("end_reason = ?", EndAccountDisabled)
	}
	ended, err := affected(query.Exec(ctx))
	if err != nil || ended == 0 {
		return err
	}
	var cause Activity
	if group.EndReason != EndKeyExpired {
		err = about().Model(&cause).Column("label", "actor_kind", "actor_id", "address").Where("action IN (?)", bun.List(endingActions)).
			OrderExpr("id DESC").Limit(1).Scan(ctx)
	}
	actor := Actor{Kind: cause.ActorKind, Address: cause.Address}
	if cause.ActorID != nil {
		actor.ID = *cause.ActorID
	}
	if actor.Kind == "" { // the expiry, or an operator's own SQL
		actor = system
		cause.Label, err = keyLabel(ctx, tx, subject)
	}
	if err := noRows(err, nil); err != nil {
		return err
	}
	return tx.Record(ctx, actor, Activity{
		AccountID: group.AccountID, Action: ActionCallsEnded, SubjectID: &subject, Label: cause.Label, Count: ended,
	})
}
