package calls

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/livekit"
	"portal/models/value"
)

// EndReason is why a call has ended.
type EndReason string

// The reasons for the end of a call.
const (
	EndVisitorLeft     EndReason = "visitor_left"
	EndConnectionLost  EndReason = "connection_lost"
	EndAgentError      EndReason = "agent_error"
	EndServerShutdown  EndReason = "server_shutdown"
	EndKeyRevoked      EndReason = "key_revoked"
	EndKeyExpired      EndReason = "key_expired"
	EndKeyRestricted   EndReason = "key_restricted" // the key's list no longer has the agent
	EndAgentRemoved    EndReason = "agent_removed"
	EndAgentPaused     EndReason = "agent_paused"
	EndAccountDisabled EndReason = "account_disabled"
	EndLimitCalls      EndReason = "limit_calls"
	EndLimitPerCall    EndReason = "limit_minutes_per_call"
	EndLimitPerMonth   EndReason = "limit_minutes_per_month"
	EndedInPortal      EndReason = "ended_in_portal"
	EndedByOperator    EndReason = "ended_by_operator"
	EndUnknown         EndReason = "unknown"
)

// disconnections maps LiveKit's reasons for the end of a connection. For others, the portal knows
// the reason or it is unknown.
var disconnections = map[string]EndReason{
	"CLIENT_INITIATED":   EndVisitorLeft,
	"CONNECTION_TIMEOUT": EndConnectionLost,
	"SIGNAL_CLOSE":       EndConnectionLost,
	"MEDIA_FAILURE":      EndConnectionLost,
	"STATE_MISMATCH":     EndConnectionLost,
	"JOIN_FAILURE":       EndConnectionLost,
	"AGENT_ERROR":        EndAgentError,
	"SERVER_SHUTDOWN":    EndServerShutdown,
}

// Call is a room that a token of the portal opened and that a visitor has been in.
type Call struct {
	bun.BaseModel `bun:"table:calls,alias:call"`

	ID        uuid.UUID `bun:",pk"`
	AccountID uuid.UUID
	AgentID   uuid.UUID
	KeyID     uuid.UUID `bun:"api_key_id"`
	RoomID    string    // of LiveKit
	RoomName  string
	UserID    *string    // of the visitor in the customer's system; nil: unknown
	StartedAt time.Time  // when the first visitor was connected
	EndedAt   *time.Time // when the last visitor left; nil: the call goes on
	EndReason EndReason  `bun:",nullzero"` // set with EndedAt
	Exact     bool       // LiveKit has reported StartedAt and, if it is set, EndedAt
	Final     bool       // the call cannot go on, and nothing changes any more

	// Why the portal ends the call, before it does. It does not go on after that.
	Ending EndReason `bun:",nullzero"`
	// Of an open call, the last list with somebody in the room, if a later one was without. Of
	// an ended call, the first list without the room, or when LiveKit finished it.
	UnseenSince *time.Time
	// By identity; empty: only lists have seen the call.
	Visitors   []callVisitor `bun:",nullzero"`
	Unrecorded bool          // the portal has ended the call, and no activity counts it yet

	// In a list: the agent's name, empty if it was removed, and the key's label.
	AgentName string `bun:",scanonly"`
	KeyLabel  string `bun:",scanonly"`
}

// CallsKept is how long calls are kept.
const CallsKept = 90 * value.Day

// callVisitor is what LiveKit has reported about a visitor. Because a second connection with the
// same identity ends the first one, only the latest connection matters.
type callVisitor struct {
	Identity string     `json:"identity"`
	UserID   string     `json:"userId,omitempty"`
	First    time.Time  `json:"first"`  // when the first connection began
	Joined   time.Time  `json:"joined"` // when the latest one began
	ID       string     `json:"id"`     // of the latest connection
	Left     *time.Time `json:"left,omitempty"`
	Reason   EndReason  `json:"reason,omitempty"`
}

// maxCallVisitors is the largest number of visitors of a call that are stored. A token is for one
// visitor and a room of its own, so there is usually one.
const maxCallVisitors = 16

// Seconds returns the duration of the call until it ended, or until now, in whole seconds.
func (c *Call) Seconds(now time.Time) int64 {
	if c.EndedAt != nil {
		now = *c.EndedAt
	}
	return max(0, int64(now.Sub(c.StartedAt)/time.Second))
}

func (c *Call) clone() Call {
	copied := *c
	copied.Visitors = slices.Clone(c.Visitors)
	return copied
}

// byAccess reports whether a change of a key, an agent or an account ends calls for this reason.
func (r EndReason) byAccess() bool {
	switch r {
	case EndKeyRevoked, EndKeyExpired, EndKeyRestricted, EndAgentRemoved, EndAgentPaused, EndAccountDisabled:
		return true
	default:
		return false
	}
}

// Open reports whether the call goes on.
func (c *Call) Open() bool { return c.EndedAt == nil }

// exactEnd reports whether LiveKit has reported the end.
func (c *Call) exactEnd() bool {
	return len(c.Visitors) > 0 && !slices.ContainsFunc(c.Visitors, func(v callVisitor) bool { return v.Left == nil })
}

// join merges the report that a visitor has connected. If the report is stale or the portal has
// ended the call, an ended call stays ended.
func (c *Call) join(v livekit.Visitor, stale bool) {
	i := c.visitor(v.Identity)
	known := i >= 0
	newer := !known || cmp.Or(v.JoinedAt.Compare(c.Visitors[i].Joined), cmp.Compare(v.ID, c.Visitors[i].ID)) > 0
	again := newer && !c.Open() && !v.JoinedAt.Before(*c.EndedAt)
	switch {
	case c.Final, !known && len(c.Visitors) >= maxCallVisitors, newer && stale && !c.Open(), again && c.Ending != "":
		return
	case c.Ending == "" && (again || newer && c.exactEnd()):
		c.EndedAt, c.UnseenSince = nil, nil // the visitor comes back
	}
	if !known {
		c.Visitors = append(c.Visitors, callVisitor{Identity: v.Identity, UserID: v.UserID, First: v.JoinedAt})
		i = len(c.Visitors) - 1
	}
	visitor := &c.Visitors[i]
	visitor.First = earlier(visitor.First, v.JoinedAt)
	if newer {
		visitor.Joined, visitor.ID, visitor.Left, visitor.Reason = v.JoinedAt, v.ID, nil, ""
	}
	if newer && c.Open() {
		c.UnseenSince = nil
	}
	c.derive()
}

// visitor returns the index of the visitor with this identity, or -1.
func (c *Call) visitor(identity string) int {
	return slices.IndexFunc(c.Visitors, func(v callVisitor) bool { return v.Identity == identity })
}

// leave merges the report that a visitor's connection has ended. The report says when it began too,
// so that the order of both does not matter.
func (c *Call) leave(v livekit.Visitor, at time.Time) {
	c.join(v, false)
	i := c.visitor(v.Identity)
	if i < 0 || c.Visitors[i].ID != v.ID || c.Visitors[i].Left != nil || c.Final {
		return
	}
	c.Visitors[i].Left, c.Visitors[i].Reason = &at, cmp.Or(disconnections[v.Reason], EndUnknown)
	c.derive()
}

// derive sets what follows from the visitors.
func (c *Call) derive() {
	if len(c.Visitors) == 0 {
		return
	}
	slices.SortFunc(c.Visitors, func(a, b callVisitor) int { return cmp.Compare(a.Identity, b.Identity) })
	first, last := c.Visitors[0], c.Visitors[0]
	for _, v := range c.Visitors[1:] {
		if v.First.Before(first.First) {
			first = v
		}
		if last.Left != nil && (v.Left == nil || v.Left.After(*last.Left)) {
			last = v
		}
	}
	c.StartedAt, c.UserID = first.First, nil
	if first.UserID != "" {
		c.UserID = &first.UserID
	}
	switch {
	case c.exactEnd():
		at := db.Later(*last.Left, c.StartedAt)
		c.EndedAt, c.Exact = &at, true
		c.EndReason = last.Reason
		if last.Reason == EndUnknown && c.Ending != "" {
			c.EndReason = c.Ending
		}
	case c.EndedAt == nil:
		c.EndReason, c.Exact = "", true
	default:
		at := db.Later(*c.EndedAt, c.StartedAt)
		c.EndedAt, c.Exact = &at, false
	}
}

// finish merges the report that LiveKit has finished the room. If the ends of visitors are not
// reported yet, the call waits for these reports.
func (c *Call) finish(at time.Time) {
	if c.Open() {
		last := at
		if c.UnseenSince != nil {
			last = earlier(last, *c.UnseenSince)
		}
		c.end(last, cmp.Or(c.Ending, EndUnknown))
	}
	switch {
	case c.exactEnd():
		c.Final = true
	case !c.Final:
		c.UnseenSince = &at
	}
}

const (
	// lateEvents is how long LiveKit tries to send an event.
	lateEvents = 15 * time.Second
	// lastFinal is how long after its end a call is final, although LiveKit still has its room
	// or is away.
	lastFinal = 75 * time.Second
)

// settled reports whether an ended call cannot go on. If LiveKit has not reported the end, it waits
// for the report.
func (c *Call) settled(now time.Time, listed bool) bool {
	ended := now.Sub(*c.EndedAt)
	switch {
	case ended >= lastFinal:
		return true
	case c.Ending != "":
		return c.exactEnd() || ended >= lateEvents
	case listed || c.UnseenSince == nil:
		return false
	case c.exactEnd():
		return now.Sub(*c.UnseenSince) >= listGap
	default:
		return now.Sub(*c.UnseenSince) >= lateEvents
	}
}

// resume lets an ended call go on, because a list still has somebody in its room.
func (c *Call) resume() {
	for i, v := range c.Visitors {
		if v.Left != nil && c.exactEnd() && !v.Left.Before(*c.EndedAt) {
			c.Visitors[i].Left, c.Visitors[i].Reason = nil, "" // LiveKit's report has been lost
		}
	}
	c.EndedAt, c.EndReason, c.UnseenSince, c.Exact = nil, "", nil, len(c.Visitors) > 0
}

// end ends the call at a time that LiveKit has not reported.
func (c *Call) end(at time.Time, reason EndReason) {
	at = db.Later(at, c.StartedAt)
	c.EndedAt, c.EndReason, c.Exact, c.UnseenSince = &at, reason, false, nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// CallElement is a call as customers get it: in the API and in the CSV.
type CallElement struct {
	ID        uuid.UUID  `json:"id"`
	AgentID   uuid.UUID  `json:"agentId"`
	KeyID     uuid.UUID  `json:"keyId"`
	UserID    *string    `json:"userId"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt"`
	Seconds   int64      `json:"seconds"` // until now while the call goes on
	EndReason *EndReason `json:"endReason"`
	Exact     bool       `json:"exact"`
	Final     bool       `json:"final"` // nothing changes any more
}

// Element returns the call as customers get it at a time.
func (c *Call) Element(now time.Time) CallElement {
	e := CallElement{
		ID: c.ID, AgentID: c.AgentID, KeyID: c.KeyID, UserID: c.UserID, StartedAt: c.StartedAt.UTC(), Seconds: c.Seconds(now), Exact: c.Exact, Final: c.Final,
	}
	if c.EndedAt != nil {
		at, reason := c.EndedAt.UTC(), c.EndReason
		e.EndedAt, e.EndReason = &at, &reason
	}
	return e
}

// callDay is what a call adds to the totals of a day.
type callDay struct{ calls, seconds int64 }

// days returns what the call adds to the totals of each day (UTC). Only an ended call has seconds.
func (c *Call) days() map[time.Time]callDay {
	if c.StartedAt.IsZero() {
		return nil
	}
	day := c.StartedAt.UTC().Truncate(value.Day)
	days := map[time.Time]callDay{day: {calls: 1}}
	if c.EndedAt == nil {
		return days
	}
	counted := int64(0)
	for end := c.Seconds(*c.EndedAt); ; day = day.Add(value.Day) {
		until := min(end, int64(day.Add(value.Day).Sub(c.StartedAt)/time.Second))
		total := days[day]
		total.seconds = until - counted
		days[day] = total
		if counted = until; counted == end {
			return days
		}
	}
}

// Used is how much of the limits is used.
type Used struct {
	Calls   int64 // that go on
	Seconds int64 // of this month (UTC), with those of calls that go on
}

// Minutes returns the minutes of this month.
func (u Used) Minutes() int64 { return u.Seconds / 60 }

// monthOf returns the start of the calendar month (UTC).
func monthOf(at time.Time) time.Time {
	at = at.UTC()
	return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// LimitError reports that a key or its account has reached a limit of its calls.
type LimitError struct {
	Reason EndReason     // [EndLimitCalls] or [EndLimitPerMonth]
	Wait   time.Duration // until another request may succeed
}

func (e *LimitError) Error() string { return "a limit of calls is reached: " + string(e.Reason) }

// callTotal is the row of a key or an account on a day.
type callTotal struct {
	bun.BaseModel `bun:"table:call_totals,alias:total"`

	SubjectID uuid.UUID `bun:",pk"`
	Day       time.Time `bun:",pk"`
	Calls     int64
	Seconds   int64
}

// lastReported returns when the last visitor was connected of whom LiveKit has reported that, or
// the zero time: lists count the others already.
func (c *Call) lastReported() (at time.Time) {
	for _, v := range c.Visitors {
		at = db.Later(at, v.Joined)
	}
	return at
}

// lastSeen returns when a list last had somebody in the room of an open call, if LiveKit last
// answered at listedAt.
func (c *Call) lastSeen(listedAt *time.Time) time.Time {
	switch {
	case c.UnseenSince != nil:
		return *c.UnseenSince
	case listedAt != nil:
		return db.Later(c.StartedAt, *listedAt)
	default:
		return c.StartedAt
	}
}

// continues reports whether an ended call goes on, because a list has somebody in its room. What
// the portal has ended does not. What LiveKit has reported wins over lists, because lists are late,
// unless LiveKit would have closed an empty room since.
func (c *Call) continues(now time.Time) bool {
	return c.Ending == "" && (!c.exactEnd() || now.Sub(*c.EndedAt) >= emptyRoom)
}

// lingers reports whether somebody may be in the room of an ended call that does not go on.
func (c *Call) lingers(room livekit.Room, now time.Time) bool {
	ago := now.Sub(*c.EndedAt)
	return c.Ending != "" && (!room.Empty || ago < emptyRoom) || c.Final && !room.Empty && ago >= settling
}
