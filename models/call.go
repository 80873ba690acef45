package models

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"golang.org/x/sync/errgroup"

	"portal/models/livekit"
)

const (
	// callsInterval is the time between two looks at the queue of calls to end.
	callsInterval = time.Second
	// endCallsTimeout limits one round of requests to LiveKit.
	endCallsTimeout = 4 * time.Second
	// openCallsTimeout limits how long a page waits for LiveKit.
	openCallsTimeout = 700 * time.Millisecond
	// maxCallsEnding is the number of calls that are ended at the same time.
	maxCallsEnding = 8
	// endedCallsInterval is the shortest time between two activities about the ended calls of
	// one key. A client with a valid token can join again and again.
	endedCallsInterval = time.Minute
)

// OpenCalls is the number of calls that were opened with tokens of a key and go on.
type OpenCalls struct {
	Known bool // false if LiveKit did not answer in time
	Count int
}

// Calls ends the calls that were opened with tokens of a key, an agent or an account.
type Calls struct {
	db       *DB
	liveKit  *livekit.Server // nil: no calls
	failures atomic.Uint64   // of attempts to end calls
}

// Open returns the calls of a key, or nil without a LiveKit server.
func (c *Calls) Open(ctx context.Context, key Key) *OpenCalls {
	if c.liveKit == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, openCallsTimeout)
	defer cancel()
	rooms, err := c.liveKit.Rooms(ctx)
	if err != nil {
		c.db.logger.WarnContext(ctx, "open calls are unknown", slog.Any("error", err))
		return &OpenCalls{}
	}
	open := &OpenCalls{Known: true}
	for _, room := range rooms {
		if room.KeyID == key.ID {
			open.Count++
		}
	}
	return open
}

// endRegularly ends calls until background ends. It logs the first of several failures in a
// row: the next look at the queue tries again.
func (c *Calls) endRegularly(background context.Context) {
	ticker := time.NewTicker(callsInterval)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-background.Done():
			return
		case <-ticker.C:
		}
		tried, err := c.endDue(background)
		switch {
		case background.Err() != nil:
			return
		case err != nil && !failing:
			c.db.logger.ErrorContext(background, "cannot end calls; retrying", slog.Any("error", err))
			failing = true
		case err == nil && tried && failing:
			c.db.logger.InfoContext(background, "calls are ended again")
			failing = false
		}
	}
}

// endDue works on the queue once. It reports whether there was work.
func (c *Calls) endDue(ctx context.Context) (tried bool, err error) {
	limited, cancel := context.WithTimeout(ctx, c.db.timeout)
	defer cancel()
	due, err := c.claim(limited)
	if err != nil || len(due) == 0 {
		return false, failed("claim calls to end", err)
	}
	subjects, err := c.subjects(limited, due)
	if err != nil {
		return true, failed("find calls to end", err)
	}
	if err = c.endCallsOf(ctx, subjects); err != nil {
		c.failures.Add(1)
	}
	return true, errors.Join(err, c.finish(ctx, due, err != nil))
}

// finish records the calls that a search has ended, and releases its work.
func (c *Calls) finish(ctx context.Context, due []hangUp, searchFailed bool) error {
	// The calls have ended, so they are recorded even if the portal is stopping.
	ctx = context.WithoutCancel(ctx)
	for i := range due {
		if err := c.recordEnded(ctx, &due[i]); err != nil {
			return failed("record ended calls", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.db.timeout)
	defer cancel()
	return failed("release calls to end", c.release(ctx, due, searchFailed))
}

// subjects maps keys and agents to the work on their calls. An account is replaced by its
// agents: removed agents have work of their own.
func (c *Calls) subjects(ctx context.Context, due []hangUp) (map[uuid.UUID]*hangUp, error) {
	subjects := make(map[uuid.UUID]*hangUp, len(due))
	ids := make([]uuid.UUID, len(due))
	for i := range due {
		ids[i] = due[i].SubjectID
		subjects[ids[i]] = &due[i]
	}
	var agents []Agent
	err := c.db.NewSelect().Model(&agents).Column("id", "account_id").Where("account_id IN (?)", bun.List(ids)).Scan(ctx)
	for _, agent := range agents {
		if subjects[agent.ID] == nil {
			subjects[agent.ID] = subjects[agent.AccountID]
		}
	}
	return subjects, err
}

// endCallsOf ends the calls of keys and agents and counts them.
func (c *Calls) endCallsOf(ctx context.Context, subjects map[uuid.UUID]*hangUp) error {
	ctx, cancel := context.WithTimeout(ctx, endCallsTimeout)
	defer cancel()
	rooms, err := c.liveKit.Rooms(ctx)
	if err != nil {
		return err
	}
	// One that fails does not stop the others.
	var group errgroup.Group
	group.SetLimit(maxCallsEnding)
	for _, room := range rooms {
		work := subjects[room.KeyID]
		if work == nil {
			work = subjects[room.AgentID]
		}
		if work != nil {
			group.Go(func() error { return c.endCall(ctx, room, work) })
		}
	}
	return group.Wait()
}

func (c *Calls) endCall(ctx context.Context, room livekit.Room, work *hangUp) error {
	deleted, err := c.liveKit.EndRoom(ctx, room)
	if deleted {
		atomic.AddInt64(&work.Ended, 1)
	}
	return err
}

// recordEnded records an activity with the number of ended calls, by the actor of the
// revocation. Within [endedCallsInterval] of the last activity it only stores the number, except
// for the last time.
func (c *Calls) recordEnded(ctx context.Context, work *hangUp) error {
	if work.Ended == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.db.timeout)
	defer cancel()
	now := c.db.Now()
	return c.db.InTx(ctx, "record ended calls", func(ctx context.Context, tx Tx) error {
		if work.RecordedAt == nil || work.hadExpired() || now.Sub(*work.RecordedAt) >= endedCallsInterval {
			if err := recordCalls(ctx, tx, work); err != nil {
				return err
			}
			work.Ended, work.RecordedAt = 0, &now
		}
		return tx.Update(ctx, work, "ended", "recorded_at")
	})
}

func recordCalls(ctx context.Context, tx Tx, work *hangUp) error {
	var cause Activity
	err := tx.NewSelect().Model(&cause).Column("account_id", "subject_id", "label", "actor_kind", "actor_id", "address").
		Where("id = ?", work.ActivityID).Scan(ctx)
	if err != nil {
		return err
	}
	actor := Actor{Kind: cause.ActorKind, Address: cause.Address}
	if cause.ActorID != nil {
		actor.ID = *cause.ActorID
	}
	return tx.RecordActivity(ctx, actor, Activity{
		AccountID: cause.AccountID, Action: ActionCallsEnded, SubjectID: cause.SubjectID, Label: cause.Label, Count: work.Ended,
	})
}
