package calls

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/livekit"
	"portal/models/value"
)

// callList is what a list of rooms means for the calls.
type callList struct {
	*Calls

	round callRound
	at    time.Time // of the list, by the database's clock; zero: none
	begun bool      // calls have begun, or go on again
	busy  bool      // the next list is due soon

	calls   map[string]*listedCall // that are not final, by the id of the room
	looked  map[uuid.UUID]int      // rooms without such a call that were looked up, by account
	access  callAccess
	missing map[uuid.UUID]bool // keys and agents that do not exist
	rooms   []Call             // to begin
	ends    []callEnd          // of rooms without a call that goes on
}

// listedCall is a call that is not final.
type listedCall struct {
	bun.BaseModel `bun:"table:calls,alias:call"`

	ID          uuid.UUID
	AccountID   uuid.UUID
	RoomID      string
	EndedAt     *time.Time
	Ending      EndReason `bun:",nullzero"`
	UnseenSince *time.Time

	listed   bool
	occupied bool
}

// mergeList brings the calls up to date with LiveKit's list of rooms: it begins those that only the
// list has seen, continues those that it has seen again, ends those that are missing in two lists
// in a row, makes them final if their rooms are gone, and ends rooms that may have no call.
func (c *Calls) mergeList(ctx context.Context, round callRound, started time.Time) (*callList, error) {
	l := &callList{
		Calls: c, round: round, calls: map[string]*listedCall{}, looked: map[uuid.UUID]int{},
		access: callAccess{keys: map[uuid.UUID]callKey{}, agents: map[uuid.UUID]callAgent{}}, missing: map[uuid.UUID]bool{},
	}
	if err := l.read(ctx); err != nil {
		return l, value.Failed("read calls", err)
	}
	if err := l.settleOverdue(ctx); err != nil {
		return l, err
	}
	if err := l.list(ctx); err != nil {
		return l, err
	}
	l.at = round.Now.Add(time.Since(started))
	if err := l.insert(ctx); err != nil {
		return l, err
	}
	if err := l.seeAll(ctx); err != nil {
		return l, err
	}
	p := &endPass{Calls: c, now: l.at}
	return l, p.endAll(ctx, l.ends)
}

// read reads the calls that are not final, before the list, so that each of them can be in it.
func (l *callList) read(ctx context.Context) error {
	var calls []*listedCall
	if err := l.db.NewSelect().Model(&calls).Where("NOT call.final").Scan(ctx); err != nil {
		return err
	}
	for _, call := range calls {
		l.calls[call.RoomID] = call
	}
	// A call goes on, its visitor may come back, the portal has ended one whose token may be
	// valid, or a limit is set.
	return l.db.NewSelect().ColumnExpr("EXISTS (?) OR EXISTS (?) OR EXISTS (?)",
		l.db.NewSelect().Table("calls").ColumnExpr("1").Where("ending IS NOT NULL AND ended_at > ?", l.round.Now.Add(-watchLife)),
		l.db.NewSelect().Table("api_keys").ColumnExpr("1").Where("limits IS NOT NULL AND revoked_at IS NULL"),
		l.db.NewSelect().Table("accounts").ColumnExpr("1").Where("limits IS NOT NULL")).Scan(ctx, &l.busy)
}

// settleOverdue makes ended calls final although LiveKit still has their rooms or is away.
func (l *callList) settleOverdue(ctx context.Context) error {
	var overdue []*listedCall
	for _, call := range l.calls {
		if call.EndedAt != nil && l.round.Now.Sub(*call.EndedAt) >= lastFinal {
			overdue = append(overdue, call)
		}
	}
	return l.change(ctx, boundedIDs(overdue), func(call *Call) {
		call.Final = call.Final || !call.Open() && call.settled(l.round.Now, true)
	})
}

// boundedIDs returns the ids of calls in the order in which they are changed: the accounts take
// turns, and of each account those whose rooms were missing before come first.
func boundedIDs(calls []*listedCall) []uuid.UUID {
	slices.SortFunc(calls, func(a, b *listedCall) int {
		if (a.UnseenSince == nil) != (b.UnseenSince == nil) {
			if a.UnseenSince != nil {
				return -1
			}
			return 1
		}
		return value.CompareIDs(a.ID, b.ID)
	})
	calls = interleaved(calls, func(call *listedCall) uuid.UUID { return call.AccountID }, maxListedOfAccount)
	ids := make([]uuid.UUID, len(calls))
	for i, call := range calls {
		ids[i] = call.ID
	}
	return ids
}

// list reads the list of rooms and keeps only a batch of it in memory.
func (l *callList) list(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var batch []livekit.Room
	err := l.liveKit.EachRoom(limited, func(room livekit.Room) error {
		call := l.calls[room.ID]
		if call != nil {
			call.listed, call.occupied = true, !room.Empty
		}
		if call != nil && call.EndedAt == nil {
			return nil
		}
		if batch = append(batch, room); len(batch) < listBatch {
			return nil
		}
		err := l.look(ctx, batch)
		batch = batch[:0]
		return err
	})
	if err != nil {
		return err
	}
	return l.look(ctx, batch)
}

// look looks up rooms without a call that goes on, and decides what to do about them. Of the rooms
// of an account, it looks at [maxListedOfAccount].
func (l *callList) look(ctx context.Context, rooms []livekit.Room) error {
	if err := l.readAccess(ctx, rooms); err != nil {
		return value.Failed("read keys and agents", err)
	}
	rooms = slices.DeleteFunc(rooms, func(room livekit.Room) bool {
		key, known := l.access.keys[room.KeyID]
		if known {
			l.looked[key.AccountID]++
		}
		return !known || l.looked[key.AccountID] > maxListedOfAccount
	})
	if len(rooms) == 0 {
		return nil
	}
	now := l.db.Now()
	known := map[string]*Call{}
	var names []string
	var found []*Call
	if err := l.db.NewSelect().Model(&found).Where("room_id IN (?)", bun.List(roomIDs(rooms))).Scan(ctx); err != nil {
		return value.Failed("read calls", err)
	}
	for _, call := range found {
		known[call.RoomID] = call
	}
	for _, room := range rooms {
		if known[room.ID] == nil {
			names = append(names, room.Name)
		}
	}
	stopped, err := stoppedCalls(ctx, l.db, names, now)
	if err != nil {
		return value.Failed("read ended calls", err)
	}
	for _, room := range rooms {
		l.place(room, known[room.ID], stopped[room.Name] != nil, now)
	}
	return nil
}

func roomIDs(rooms []livekit.Room) []string {
	ids := make([]string, len(rooms))
	for i, room := range rooms {
		ids[i] = room.ID
	}
	return ids
}

// readAccess reads the keys and agents of rooms that are not known yet. Those that do not exist are
// remembered too.
func (l *callList) readAccess(ctx context.Context, rooms []livekit.Room) error {
	var keys, agents []uuid.UUID
	for _, room := range rooms {
		keys, agents = append(keys, room.KeyID), append(agents, room.AgentID)
	}
	unknown := func(ids []uuid.UUID, known func(uuid.UUID) bool) []uuid.UUID {
		slices.SortFunc(ids, value.CompareIDs)
		return slices.DeleteFunc(slices.Compact(ids), known)
	}
	keys = unknown(keys, func(id uuid.UUID) bool { return l.access.keys[id].ID != uuid.Nil || l.missing[id] })
	agents = unknown(agents, func(id uuid.UUID) bool { return l.access.agents[id].ID != uuid.Nil || l.missing[id] })
	read, err := readCallAccess(ctx, l.db, l.db, keys, agents)
	if err != nil {
		return err
	}
	for _, id := range keys {
		if key, exists := read.keys[id]; exists {
			l.access.keys[id] = key
		} else {
			l.missing[id] = true
		}
	}
	for _, id := range agents {
		if agent, exists := read.agents[id]; exists {
			l.access.agents[id] = agent
		} else {
			l.missing[id] = true
		}
	}
	return nil
}

// place decides what to do about a room without a call that goes on: call is its call, if it had
// one, and stopped means that the portal has ended a call in a room of its name.
func (l *callList) place(room livekit.Room, call *Call, stopped bool, now time.Time) {
	unseen := newCall(room, l.access.keys[room.KeyID].AccountID)
	unseen.StartedAt = plausibleTime(room.CreatedAt, now)
	denied := l.access.denies(&unseen)
	switch {
	case call != nil && call.Open(): // it has begun since
	case call != nil && call.lingers(room, now):
		// The visitor may have come back, although the call has ended. A list says so late.
		l.ends = append(l.ends, callEnd{call: *call, end: l.liveKit.DisconnectRoom})
	case call != nil && room.Empty && now.Sub(*call.EndedAt) >= closing:
		l.ends = append(l.ends, callEnd{call: *call, end: l.liveKit.CloseRoom})
	case room.Empty && !room.New:
	case denied != "" && call != nil:
		l.ends = append(l.ends, callEnd{call: *call, reason: denied})
	case denied != "":
		// Somebody may be in a new room, before a list counts them.
		unseen.ID = uuid.Nil
		l.ends = append(l.ends, callEnd{call: unseen, reason: denied})
	case call == nil && stopped:
		l.ends = append(l.ends, callEnd{call: unseen, end: l.endRoom})
	case call == nil && !room.Empty:
		l.rooms = append(l.rooms, unseen)
	}
}

func (c *Calls) endRoom(ctx context.Context, name string) error {
	_, err := c.liveKit.EndRoom(ctx, name)
	return err
}

// insert inserts calls that no report has begun in the meantime.
func (l *callList) insert(ctx context.Context) error {
	rooms := interleaved(l.rooms, func(call Call) uuid.UUID { return call.AccountID }, maxListedOfAccount)
	for batch := range slices.Chunk(rooms, callBatch) {
		err := l.db.InTx(ctx, "insert calls", func(ctx context.Context, tx db.Tx) error {
			return insertCalls(ctx, tx, batch...)
		})
		if err != nil {
			return err
		}
		l.begun, l.busy = true, true
	}
	return nil
}

// seeAll changes the calls about which the list says something new.
func (l *callList) seeAll(ctx context.Context) error {
	var changed []*listedCall
	for _, call := range l.calls {
		l.busy = true
		news := !call.occupied || call.UnseenSince != nil
		if call.EndedAt != nil {
			news = !call.listed || call.occupied || call.UnseenSince != nil || call.Ending != ""
		}
		if news {
			changed = append(changed, call)
		}
	}
	return l.change(ctx, boundedIDs(changed), func(call *Call) {
		before := call.Open()
		listed := l.calls[call.RoomID]
		l.see(call, listed.listed, listed.occupied)
		l.begun = l.begun || call.Open() && !before
	})
}

// see changes a call as the list says: whether the room is in it, and whether with somebody.
func (l *callList) see(call *Call, listed, occupied bool) {
	switch {
	case call.Final:
	case !call.Open():
		switch {
		case occupied && call.continues(l.at):
			call.resume()
		case call.settled(l.at, listed):
			call.Final = true
		case listed:
			call.UnseenSince = nil
		case call.UnseenSince == nil:
			call.UnseenSince = &l.at
		}
	case occupied:
		call.UnseenSince = nil
	case listed && l.at.Sub(call.lastReported()) < settling: // the list does not count the visitor yet
	case call.UnseenSince == nil:
		call.UnseenSince = new(call.lastSeen(l.round.ListedAt))
	case l.round.ListedAt != nil && l.at.Sub(*l.round.ListedAt) >= listGap, l.at.Sub(*call.UnseenSince) >= unseenFor:
		call.end(*call.UnseenSince, cmp.Or(call.Ending, EndUnknown))
		if !listed {
			call.UnseenSince = &l.at
		}
	}
}
