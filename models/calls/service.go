package calls

import (
	"sync/atomic"

	"portal/models/internal/db"
	"portal/models/livekit"
)

// Calls are the calls of visitors. LiveKit's lists of rooms and its webhooks say which calls there
// are. The portal ends those that may not go on.
type Calls struct {
	db      *db.DB
	liveKit *livekit.Server // nil: no calls

	wake     chan struct{} // starts a round early
	failures atomic.Uint64 // rounds that failed
}

// New returns the service. Without a server, it is not enabled.
func New(db *db.DB, server *livekit.Server) *Calls {
	return &Calls{db: db, liveKit: server, wake: make(chan struct{}, 1)}
}

// FailedRounds returns the number of rounds since the start that could not list or end calls.
func (c *Calls) FailedRounds() uint64 { return c.failures.Load() }

// Enabled reports whether the store has a LiveKit server.
func (c *Calls) Enabled() bool { return c.liveKit != nil }
