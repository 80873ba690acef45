package calls

import (
	"time"

	"github.com/uptrace/bun"

	"portal/models/widget"
)

const (
	// roundTick is the time between two looks whether a round is due.
	roundTick = time.Second
	// busyInterval is the time between two rounds while a call is open, a limit is set, or a
	// token may be valid that may not open a call any more.
	busyInterval = 5 * time.Second
	// idleInterval is the time between two rounds while nothing asks for busyInterval.
	idleInterval = 30 * time.Second
	// roundEarly is how much earlier a round is due than its interval says, so that it runs at
	// the nearest tick and not at the one after it.
	roundEarly = roundTick / 2
	// minInterval is the shortest time between two lists, however often something changes.
	minInterval = 900 * time.Millisecond
	// roundLease is how long a round belongs to an instance, unless it renews the lease.
	roundLease = 15 * time.Second
	// watchLife is how long tokens can be valid that were issued before access was withdrawn,
	// even if the clocks of the portal and of LiveKit differ.
	watchLife = widget.MaxTTL + 2*time.Minute
	// activityDelay is more than the time from the id of an activity to its commit, and than
	// the difference of two clocks.
	activityDelay = time.Minute
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
	// listTimeout limits the request of a round that lists LiveKit's rooms.
	listTimeout = 10 * time.Second
	// listBatch is the number of rooms of a list that are looked up at once.
	listBatch = 1000
	// maxListedOfAccount limits the calls of an account that a round begins, and those that it
	// changes. The next rounds do the rest.
	maxListedOfAccount = 5000
)

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
	Withdrawn    bool      `bun:",scanonly"` // access was withdrawn since CheckedAt
	Open         bool      `bun:",scanonly"` // a call goes on, or its visitor may come back
}
