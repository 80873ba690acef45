package models

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"golang.org/x/sync/errgroup"

	"portal/models/livekit"
	"portal/models/widget"
)

const (
	// roundTick is the time between two looks whether a round is due.
	roundTick = time.Second
	// idleInterval is the time between two rounds while nothing asks for [busyInterval].
	idleInterval = 30 * time.Second
	// roundEarly is how much earlier a round is due than its interval says, so that it runs at
	// the nearest tick and not at the one after it.
	roundEarly = roundTick / 2
	// minInterval is the shortest time between two lists, however often something changes.
	minInterval = 900 * time.Millisecond
	// roundLease is how long a round belongs to an instance: longer than a round takes.
	roundLease = 15 * time.Second
	// listTimeout and endTimeout limit the requests of a round to LiveKit.
	listTimeout = 4 * time.Second
	endTimeout  = 4 * time.Second
	// maxEnding is the number of calls that are ended at the same time.
	maxEnding = 8
	// watchLife is how long tokens can be valid that were issued before access changed, even if
	// the clocks of the portal and of LiveKit differ.
	watchLife = widget.MaxTTL + 2*time.Minute
	// listGap is the shortest time between two lists, both without a room, that end its call,
	// so that lists that follow each other quickly do not count.
	listGap = busyInterval - roundTick
	// unseenFor is how long the room of a call is missing from such quick lists until it has
	// ended.
	unseenFor = 2*busyInterval - roundTick
	// settling is the time after which LiveKit's lists count a visitor who has come or left.
	settling = 10 * time.Second
	// emptyRoom is longer than LiveKit keeps a room after the last visitor has left.
	emptyRoom = 30 * time.Second
	// closing is how long after its end the room of a call is deleted, because a server may
	// keep rooms for longer.
	closing = time.Minute
	// maxRoomsOfKey limits the rooms of a key that a round reads: the oldest.
	maxRoomsOfKey = 10_000
	// endedCallsInterval is the shortest time between two activities about the ended calls of
	// one key, agent or account. A client with a valid token can join again and again.
	endedCallsInterval = time.Minute
	// maxEndedSubjects limits the activities of a round about ended calls.
	maxEndedSubjects = 100
)

// callRound is the row of the rounds.
type callRound struct {
	bun.BaseModel `bun:"table:call_rounds,alias:r"`

	Round      int64
	LeaseUntil time.Time
	DueAt      time.Time
	ListedAt   *time.Time
	CheckedAt  time.Time
	Epoch      []byte
	WatchUntil time.Time

	Now          time.Time `bun:",scanonly"`
	CurrentEpoch []byte    `bun:",scanonly"`
	Expired      bool      `bun:",scanonly"` // a key has expired since CheckedAt
	Open         bool      `bun:",scanonly"` // a call goes on, or its visitor may come back
}

// runRegularly runs rounds until ctx ends. Because the next round tries again, it logs only the
// first of several failures in a row.
func (c *Calls) runRegularly(ctx context.Context) {
	ticker := time.NewTicker(roundTick)
	defer ticker.Stop()
	early, failing := false, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-c.wake:
			early = true
		}
		ran, err := c.runRound(ctx, early)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.failures.Add(1)
			if !failing {
				c.db.logger.ErrorContext(ctx, "cannot list or end calls; retrying", slog.Any("error", err))
			}
			failing, early = true, false
		case ran:
			if failing {
				c.db.logger.InfoContext(ctx, "calls are listed and ended again")
			}
			failing, early = false, false
		}
	}
}

// runRound runs a round if one is due, or if early, and reports whether it did.
func (c *Calls) runRound(ctx context.Context, early bool) (ran bool, err error) {
	started := time.Now()
	round, due, err := c.beginRound(ctx, early)
	if err != nil || !due {
		return false, failed("begin a round of calls", err)
	}
	changed := !bytes.Equal(round.Epoch, round.CurrentEpoch) || round.Expired
	next := callRound{
		Round: round.Round, CheckedAt: round.Now, Epoch: round.CurrentEpoch, ListedAt: round.ListedAt, WatchUntil: round.WatchUntil,
		DueAt: round.Now.Add(busyInterval - roundEarly), LeaseUntil: round.Now,
	}
	if changed {
		next.WatchUntil = round.Now.Add(watchLife)
	}
	settleErr := c.settleOverdue(ctx, round.Now)
	listing, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	rooms, err := c.liveKit.Rooms(listing)
	if err != nil {
		// Nothing is known, so the epoch stays as it was seen by the last complete round.
		next.CheckedAt, next.Epoch = round.CheckedAt, round.Epoch
		return true, errors.Join(err, settleErr, c.endRound(ctx, next))
	}
	listed := round.Now.Add(time.Since(started))
	next.ListedAt = &listed
	busy, err := c.workOn(ctx, round, listed, boundRooms(rooms))
	switch {
	case err != nil:
		next.DueAt = listed.Add(roundTick)
	case !busy && !listed.Before(next.WatchUntil):
		next.DueAt = listed.Add(idleInterval - roundEarly)
	}
	return true, errors.Join(err, settleErr, c.endRound(ctx, next))
}

// settleOverdue makes ended calls final although LiveKit still has their rooms or is away.
func (c *Calls) settleOverdue(ctx context.Context, now time.Time) error {
	var ids []uuid.UUID
	err := c.db.NewSelect().Model((*Call)(nil)).Column("id").Where("NOT call.final AND call.ended_at <= ?", now.Add(-lastFinal)).
		OrderExpr("call.id").Limit(maintenanceBatch).Scan(ctx, &ids)
	if err != nil {
		return failed("find ended calls", err)
	}
	return c.change(ctx, ids, func(call *Call) { call.Final = call.Final || !call.Open() && call.settled(now, true) })
}

// beginRound takes the lease if a round is due. One statement says whether it is.
func (c *Calls) beginRound(ctx context.Context, early bool) (round callRound, due bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.db.timeout)
	defer cancel()
	expired := c.db.NewSelect().Table("api_keys").ColumnExpr("1").
		Where("revoked_at IS NULL AND expires_at IS NOT NULL AND expires_at > r.checked_at AND expires_at <= ?", c.db.clock())
	query := c.db.NewSelect().Model(&round).ColumnExpr("?TableColumns").
		ColumnExpr("? AS now, e.value AS current_epoch, EXISTS (?) AS expired", c.db.clock(), expired).
		ColumnExpr("EXISTS (?) AS open", c.db.NewSelect().Table("calls").ColumnExpr("1").Where("NOT final")).
		Join("CROSS JOIN auth_epoch AS e")
	if err := c.db.onPrimary(query).Scan(ctx); err != nil {
		return round, false, noRows(err, nil) // a standby
	}
	if begun := round.LeaseUntil.Add(busyInterval - roundEarly); round.Open && begun.Before(round.DueAt) {
		round.DueAt = begun // an event has begun a call since the last round
	}
	due = early || round.Expired || !round.Now.Before(round.DueAt) || !bytes.Equal(round.Epoch, round.CurrentEpoch)
	leased := round.Now.Before(round.LeaseUntil) && round.LeaseUntil.Sub(round.Now) <= roundLease
	justListed := round.ListedAt != nil && round.Now.Sub(*round.ListedAt) < minInterval && !round.Now.Before(*round.ListedAt)
	if !due || leased || justListed {
		return round, false, nil
	}
	taken, err := affected(c.db.NewUpdate().Model(&round).Set("round = round + 1, lease_until = ?", round.Now.Add(roundLease)).
		Where("round = ?", round.Round).Exec(ctx))
	round.Round++
	return round, taken > 0, err
}

// endRound writes the result of a round, unless another instance has begun a later one.
func (c *Calls) endRound(ctx context.Context, next callRound) error {
	// The calls have ended, even if the portal is stopping.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.db.timeout)
	defer cancel()
	_, err := c.db.NewUpdate().Model(&next).Column("lease_until", "due_at", "listed_at", "checked_at", "epoch", "watch_until").
		Where("round = ?", next.Round).Exec(ctx)
	return failed("end a round of calls", err)
}

// boundRooms returns the rooms, the oldest first, with at most [maxRoomsOfKey] of each key.
func boundRooms(rooms []livekit.Room) []livekit.Room {
	slices.SortFunc(rooms, func(a, b livekit.Room) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	ofKey := map[uuid.UUID]int{}
	return slices.DeleteFunc(rooms, func(room livekit.Room) bool {
		ofKey[room.KeyID]++
		return ofKey[room.KeyID] > maxRoomsOfKey
	})
}

// workOn brings the calls up to date with a list of rooms, ends those that may not go on, and
// reports whether the next round is due soon.
func (c *Calls) workOn(ctx context.Context, round callRound, listed time.Time, rooms []livekit.Room) (busy bool, err error) {
	w := &roundWork{Calls: c, round: round, now: listed, rooms: rooms}
	if err := w.read(ctx); err != nil {
		return true, failed("read calls", err)
	}
	if err := w.mergeList(ctx); err != nil {
		return true, err
	}
	ends, err := w.ends(ctx)
	if err != nil {
		return true, failed("find calls to end", err)
	}
	err = w.endAll(ctx, ends)
	if recordErr := c.recordEnded(ctx); recordErr != nil {
		err = errors.Join(err, failed("record ended calls", recordErr))
	}
	return w.busy, err
}

// roundWork is the state of a round.
type roundWork struct {
	*Calls

	round callRound
	now   time.Time // of the list, by the database's clock
	rooms []livekit.Room

	open    map[string]*Call // that go on, by the id of the room
	ended   map[string]*Call // that have ended and are not final, or whose rooms are in the list
	stopped map[string]*Call // that the portal has ended, by the name of a room with another call
	access  callAccess
	busy    bool // the next round is due soon
}

// read reads the calls that go on or whose rooms are in the list, and what decides whether they
// may.
func (w *roundWork) read(ctx context.Context) error {
	return w.db.InTx(ctx, "read calls", func(ctx context.Context, tx Tx) error {
		var calls []*Call
		if err := tx.NewSelect().Model(&calls).Where("NOT final").Scan(ctx); err != nil {
			return err
		}
		w.open, w.ended = map[string]*Call{}, map[string]*Call{}
		for _, call := range calls {
			if call.Open() {
				w.open[call.RoomID] = call
			} else {
				w.ended[call.RoomID] = call
			}
		}
		var other, names []string
		keys, agents := map[uuid.UUID]struct{}{}, map[uuid.UUID]struct{}{}
		for _, room := range w.rooms {
			if w.open[room.ID] == nil && w.ended[room.ID] == nil {
				other, names = append(other, room.ID), append(names, room.Name)
			}
			keys[room.KeyID], agents[room.AgentID] = struct{}{}, struct{}{}
		}
		for _, call := range calls {
			keys[call.KeyID], agents[call.AgentID] = struct{}{}, struct{}{}
		}
		err := w.readEnded(ctx, tx, other)
		if err != nil {
			return err
		}
		if w.stopped, err = stoppedCalls(ctx, tx, names, w.now); err != nil {
			return err
		}
		if w.access, err = readCallAccess(ctx, tx, sortedSet(keys), sortedSet(agents)); err != nil {
			return err
		}
		// The portal has ended a call whose token may be valid, or a limit is set.
		return tx.NewSelect().ColumnExpr("EXISTS (?) OR EXISTS (?) OR EXISTS (?)",
			tx.NewSelect().Table("calls").ColumnExpr("1").Where("ending IS NOT NULL AND ended_at > ?", w.now.Add(-watchLife)),
			tx.NewSelect().Table("api_keys").ColumnExpr("1").Where("limits IS NOT NULL AND revoked_at IS NULL"),
			tx.NewSelect().Table("accounts").ColumnExpr("1").Where("limits IS NOT NULL")).Scan(ctx, &w.busy)
	})
}

// readEnded reads the final calls in these rooms.
func (w *roundWork) readEnded(ctx context.Context, tx Tx, rooms []string) error {
	for batch := range slices.Chunk(rooms, maintenanceBatch) {
		var found []*Call
		if err := tx.NewSelect().Model(&found).Where("room_id IN (?)", bun.List(batch)).Scan(ctx); err != nil {
			return err
		}
		for _, call := range found {
			w.ended[call.RoomID] = call
		}
	}
	return nil
}

func sortedSet(ids map[uuid.UUID]struct{}) []uuid.UUID {
	list := make([]uuid.UUID, 0, len(ids))
	for id := range ids {
		list = append(list, id)
	}
	slices.SortFunc(list, compareIDs)
	return list
}

// mergeList inserts the calls that only the list has seen, continues those that it has seen again,
// ends those that are missing in two lists in a row, and makes them final if their rooms are.
func (w *roundWork) mergeList(ctx context.Context) error {
	listed, seen := map[string]bool{}, map[string]bool{}
	var begun []Call
	var changed []uuid.UUID
	for _, room := range w.rooms {
		listed[room.ID] = true
		key, known := w.access.keys[room.KeyID]
		if room.Empty || !known {
			continue
		}
		seen[room.ID] = true
		switch open, ended := w.open[room.ID], w.ended[room.ID]; {
		case open != nil && open.UnseenSince != nil, ended != nil && w.continues(ended):
			changed = append(changed, cmp.Or(open, ended).ID)
		case open == nil && ended == nil && w.stopped[room.Name] == nil:
			call := newCall(room, key.AccountID)
			call.StartedAt = room.CreatedAt
			begun = append(begun, call)
		}
	}
	for id, call := range w.open {
		if !listed[id] || !seen[id] && w.now.Sub(call.lastReported()) >= settling {
			changed = append(changed, call.ID)
		}
	}
	for id, call := range w.ended {
		if !call.Final && (!seen[id] || call.Ending != "") {
			changed = append(changed, call.ID)
		}
	}
	if err := w.insert(ctx, begun); err != nil {
		return err
	}
	slices.SortFunc(changed, compareIDs)
	err := w.change(ctx, changed, func(call *Call) { w.see(call, listed, seen) })
	w.busy = w.busy || len(w.open)+len(w.ended) > 0
	return err
}

// insert inserts calls that no report has begun in the meantime.
func (w *roundWork) insert(ctx context.Context, begun []Call) error {
	for batch := range slices.Chunk(begun, callBatch) {
		err := w.db.InTx(ctx, "insert calls", func(ctx context.Context, tx Tx) error {
			inserted, err := insertCalls(ctx, tx, batch...)
			for i := range batch {
				if slices.Contains(inserted, batch[i].ID) {
					w.open[batch[i].RoomID] = &batch[i]
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// see changes a call as the list says: the rooms, and those with somebody in them.
func (w *roundWork) see(call *Call, listed, seen map[string]bool) {
	switch {
	case call.Final:
	case seen[call.RoomID] && !call.Open() && w.continues(call):
		call.resume()
		w.open[call.RoomID] = call
		delete(w.ended, call.RoomID)
	case !call.Open():
		switch {
		case call.settled(w.now, listed[call.RoomID]):
			call.Final = true
		case listed[call.RoomID]:
			call.UnseenSince = nil
		case call.UnseenSince == nil:
			call.UnseenSince = &w.now
		}
	case seen[call.RoomID]:
		call.UnseenSince = nil
	case call.UnseenSince == nil:
		since := call.StartedAt
		if w.round.ListedAt != nil {
			since = later(since, *w.round.ListedAt)
		}
		call.UnseenSince = &since
	case w.round.ListedAt != nil && w.now.Sub(*w.round.ListedAt) >= listGap, w.now.Sub(*call.UnseenSince) >= unseenFor:
		call.end(*call.UnseenSince, cmp.Or(call.Ending, EndUnknown))
		if !listed[call.RoomID] {
			call.UnseenSince = &w.now
		}
		delete(w.open, call.RoomID)
		w.ended[call.RoomID] = call
	}
}

// lastReported returns when the last visitor was connected of whom LiveKit has reported that, or
// the zero time: lists count the others already.
func (c *Call) lastReported() (at time.Time) {
	for _, v := range c.Visitors {
		at = later(at, v.Joined)
	}
	return at
}

// continues reports whether an ended call goes on, because a list has somebody in its room. What
// the portal has ended does not. What LiveKit has reported wins over lists, because lists are late,
// unless LiveKit would have closed an empty room since.
func (w *roundWork) continues(call *Call) bool {
	return !call.Final && call.Ending == "" && (!call.exactEnd() || w.now.Sub(*call.EndedAt) >= emptyRoom)
}

// callEnd is a call that the portal ends.
type callEnd struct {
	call   Call // without an id if no list has seen it
	reason EndReason
	// end ends a room whose call has ended before; nil: a room with a call.
	end func(ctx context.Context, name string) error
}

// ends returns the calls to end: those that may not go on, those that a user or an operator ends,
// and those beyond a limit, the newest first.
func (w *roundWork) ends(ctx context.Context) ([]callEnd, error) {
	var ends []callEnd
	ofSubject := map[uuid.UUID][]*Call{} // that go on, of limited keys and accounts
	for _, call := range w.open {
		key := w.access.keys[call.KeyID]
		switch reason := w.access.denies(call); {
		case reason != "":
			ends = append(ends, callEnd{call: *call, reason: reason})
			continue
		case call.Ending != "":
			ends = append(ends, callEnd{call: *call, reason: call.Ending})
			continue
		}
		if !key.Limits.IsZero() {
			ofSubject[key.ID] = append(ofSubject[key.ID], call)
		}
		if !key.AccountLimits.IsZero() {
			ofSubject[key.AccountID] = append(ofSubject[key.AccountID], call)
		}
	}
	for _, room := range w.rooms {
		// Somebody may be in a new room, and may have come back into an old one.
		key, known := w.access.keys[room.KeyID]
		if !known || w.open[room.ID] != nil {
			continue
		}
		call, stopped := newCall(room, key.AccountID), w.stopped[room.Name]
		call.StartedAt = room.CreatedAt
		if ended := w.ended[room.ID]; ended != nil {
			call = *ended
			if end := w.lingers(call, room); end != nil {
				ends = append(ends, callEnd{call: call, end: end})
				continue
			}
		}
		if room.Empty && !room.New {
			continue
		}
		switch reason := w.access.denies(&call); {
		case reason != "":
			ends = append(ends, callEnd{call: call, reason: reason})
		case stopped != nil && w.ended[room.ID] == nil:
			ends = append(ends, callEnd{call: call, end: func(ctx context.Context, name string) error {
				_, err := w.liveKit.EndRoom(ctx, name)
				return err
			}})
		}
	}
	beyond, err := w.beyondLimits(ctx, ofSubject)
	return interleaved(append(ends, beyond...)), err
}

// lingers returns what to do about the room of an ended call; nil: nothing.
func (w *roundWork) lingers(call Call, room livekit.Room) func(context.Context, string) error {
	ago := w.now.Sub(*call.EndedAt)
	switch {
	case call.Ending != "" && (!room.Empty || ago < emptyRoom), call.Final && !room.Empty && ago >= settling:
		// The visitor may have come back, although the call has ended. A list says so late.
		return w.liveKit.DisconnectRoom
	case room.Empty && ago >= closing:
		return w.liveKit.CloseRoom
	default:
		return nil
	}
}

// beyondLimits returns the calls that end because of a limit, each once.
func (w *roundWork) beyondLimits(ctx context.Context, ofSubject map[uuid.UUID][]*Call) ([]callEnd, error) {
	reasons := map[string]EndReason{}
	for subject, calls := range ofSubject {
		key := w.access.keys[calls[0].KeyID]
		limits, noted := key.AccountLimits, uuid.Nil
		if subject == key.ID {
			limits, noted = key.Limits, key.ID
		}
		if limits.MinutesPerMonth > 0 {
			used, err := w.noteUsed(ctx, key, noted)
			if err != nil {
				return nil, err
			}
			if used.Seconds >= 60*limits.MinutesPerMonth {
				for _, call := range calls {
					reasons[call.RoomID] = EndLimitPerMonth
				}
				continue
			}
		}
		w.beyondLimit(calls, limits, reasons)
	}
	var ends []callEnd
	for room, reason := range reasons {
		ends = append(ends, callEnd{call: *w.open[room], reason: reason})
	}
	return ends, nil
}

// beyondLimit adds the reasons to end calls of a key or an account that are too long or too many.
func (w *roundWork) beyondLimit(calls []*Call, limits Limits, reasons map[string]EndReason) {
	// The oldest first.
	slices.SortFunc(calls, func(a, b *Call) int { return cmp.Or(a.StartedAt.Compare(b.StartedAt), compareIDs(a.ID, b.ID)) })
	counted := int64(0)
	for _, call := range calls {
		if limits.MinutesPerCall > 0 && w.now.Sub(call.StartedAt) >= time.Duration(limits.MinutesPerCall)*time.Minute {
			reasons[call.RoomID] = cmp.Or(reasons[call.RoomID], EndLimitPerCall)
		}
		if reasons[call.RoomID] != "" {
			continue
		}
		if counted++; limits.Calls > 0 && counted > limits.Calls {
			reasons[call.RoomID] = EndLimitCalls
		}
	}
}

// noteUsed returns what an account, or one of its keys unless keyID is zero, has used, and records
// when it approaches or reaches its limit.
func (w *roundWork) noteUsed(ctx context.Context, key callKey, keyID uuid.UUID) (CallsUsed, error) {
	return inTx(ctx, w.db, "note used minutes", func(ctx context.Context, tx Tx) (CallsUsed, error) {
		used, err := usedCalls(ctx, tx, tx.db, key.AccountID, keyID, w.now)
		if err != nil {
			return used, err
		}
		return used, noteUsedMinutes(ctx, tx, key)
	})
}

// interleaved orders calls so that one account's many calls do not delay those of the others.
func interleaved(ends []callEnd) []callEnd {
	slices.SortFunc(ends, func(a, b callEnd) int { return cmp.Compare(a.call.RoomID, b.call.RoomID) })
	ofAccount, places := map[uuid.UUID]int{}, map[string]int{}
	for _, end := range ends {
		places[end.call.RoomID] = ofAccount[end.call.AccountID]
		ofAccount[end.call.AccountID]++
	}
	slices.SortStableFunc(ends, func(a, b callEnd) int { return cmp.Compare(places[a.call.RoomID], places[b.call.RoomID]) })
	return ends
}

// endAll ends calls. First it writes why, so that LiveKit cannot report the end before.
func (w *roundWork) endAll(ctx context.Context, ends []callEnd) error {
	byReason := map[EndReason][]uuid.UUID{}
	for _, end := range ends {
		if end.end == nil && w.open[end.call.RoomID] != nil && end.call.Ending != end.reason {
			byReason[end.reason] = append(byReason[end.reason], end.call.ID)
		}
	}
	for reason, ids := range byReason {
		for batch := range slices.Chunk(ids, maintenanceBatch) {
			_, err := w.db.NewUpdate().Model((*Call)(nil)).Set("ending = ?", reason).
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
	var known []uuid.UUID
	var unseen []Call
	for _, end := range ends {
		group.Go(func() error {
			if end.end != nil {
				return end.end(limited, end.call.RoomName)
			}
			ended, err := w.liveKit.EndRoom(limited, end.call.RoomName)
			if !ended {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if w.open[end.call.RoomID] != nil || w.ended[end.call.RoomID] != nil {
				known = append(known, end.call.ID)
				return err
			}
			end.call.Ending = end.reason
			end.call.end(w.now, end.reason)
			unseen = append(unseen, end.call)
			return err
		})
	}
	err := group.Wait()
	return errors.Join(err, w.recordEnds(context.WithoutCancel(ctx), known, unseen))
}

// recordEnds records that calls have ended, and those that no list has seen.
func (w *roundWork) recordEnds(ctx context.Context, known []uuid.UUID, unseen []Call) error {
	slices.SortFunc(known, compareIDs)
	if err := w.markEnded(ctx, known, w.now); err != nil {
		return err
	}
	for batch := range slices.Chunk(unseen, callBatch) {
		err := w.db.InTx(ctx, "insert ended calls", func(ctx context.Context, tx Tx) error {
			_, err := insertCalls(ctx, tx, batch...)
			return err
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
