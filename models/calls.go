package models

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"golang.org/x/sync/errgroup"

	"portal/models/livekit"
	"portal/models/widget"
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
	failures atomic.Uint64   // rounds of requests to LiveKit that failed
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
		if room.KeyID == key.ID && !room.Empty {
			open.Count++
		}
	}
	return open
}

// endRegularly ends calls until background ends. Because the next look at the queue tries again, it
// logs only the first of several failures in a row.
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

// endDue works on the queue once, and reports whether there was work.
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
	if err != nil {
		return nil, err
	}
	var keys []Key
	err = c.db.NewSelect().Model(&keys).Column("id", "account_id", "label", "revoked_at", "expires_at", "agents").
		Where("id IN (?)", bun.List(ids)).Scan(ctx)
	for i := range keys {
		subjects[keys[i].ID].key = &keys[i]
	}
	return subjects, err
}

// endCallsOf ends the calls of keys and agents, except those that an active key still allows, and
// counts them.
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
		if work == nil || work.key != nil && work.key.reaches(room.AgentID, c.db.Now()) {
			work = subjects[room.AgentID]
		}
		if work != nil {
			group.Go(func() error { return c.endCall(ctx, room, work) })
		}
	}
	return group.Wait()
}

func (c *Calls) endCall(ctx context.Context, room livekit.Room, work *hangUp) error {
	ended, err := c.liveKit.EndRoom(ctx, room)
	if ended {
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
	if errors.Is(err, sql.ErrNoRows) && work.key != nil {
		// The key has expired, or a user has repeated a change.
		cause = Activity{AccountID: work.key.AccountID, SubjectID: &work.key.ID, Label: work.key.Label, ActorKind: ActorOperator}
		err = nil
	}
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

const (
	// HangUpLife is how long the portal ends the calls of a key, agent or account. After that,
	// no token can open another call, even if the clocks of the portal and of LiveKit differ.
	HangUpLife = widget.MaxTTL + 2*time.Minute
	// hangUpKept is how much longer the portal tries to reach LiveKit, because calls outlive
	// their tokens.
	hangUpKept = 24 * time.Hour
	// hangUpInterval is the time between two searches for the same calls. A client with a valid
	// token can join its room again.
	hangUpInterval = 2 * time.Second
	// hangUpLease is how long claimed work belongs to one instance: longer than a search, so
	// that two instances do not count the same calls. It also limits how long an instance that
	// has stopped delays the work.
	hangUpLease = 10 * time.Second
	// maxHangUps limits how many entries an instance works on at once.
	maxHangUps = 1000
)

// hangUp is the work to end the calls that were opened with the tokens of a key, an agent or an
// account.
type hangUp struct {
	bun.BaseModel `bun:"table:hang_ups"`

	ActivityID uuid.UUID `bun:",pk"` // that ends the calls; the key's id for its expiry
	SubjectID  uuid.UUID
	DueAt      time.Time
	ExpiresAt  time.Time
	Ended      int64      // calls that are in no activity yet
	RecordedAt *time.Time // the last activity about ended calls

	key *Key // the subject, if it is a key
}

// Enabled reports whether the store ends calls.
func (c *Calls) Enabled() bool { return c.liveKit != nil }

// EndingFor returns the time since the oldest revocation whose calls are still being ended, or 0 if
// there is none.
func (c *Calls) EndingFor(ctx context.Context) (time.Duration, error) {
	var oldest hangUp
	err := c.db.NewSelect().Model(&oldest).Column("expires_at").
		Where("expires_at <= ?", c.db.Now().Add(HangUpLife)). // the others wait for a key to expire
		OrderExpr("expires_at").Limit(1).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return c.db.Now().Sub(oldest.ExpiresAt.Add(-HangUpLife)), failed("find the oldest hang-up", err)
}

// allowCalls cancels the end of calls of an agent or account that exists or is enabled again.
func allowCalls(ctx context.Context, tx Tx, subjectID uuid.UUID) error {
	return tx.Delete(ctx, (*hangUp)(nil), "subject_id = ?", subjectID)
}

// claim returns the work that is due. No other instance gets it before it is released or
// [hangUpLease] has passed.
func (c *Calls) claim(ctx context.Context) ([]hangUp, error) {
	now := c.db.Now()
	due := c.db.NewSelect().Model((*hangUp)(nil)).Column("activity_id").
		Where("due_at <= ?", now).OrderExpr("due_at").Limit(maxHangUps)
	// Without work, SQLite is not locked for writing.
	if found, err := due.Exists(ctx); err != nil || !found {
		return nil, err
	}
	due = c.db.locked(due, "UPDATE SKIP LOCKED")
	var claimed []hangUp
	err := c.db.NewUpdate().Model(&claimed).Set("due_at = ?", now.Add(hangUpLease)).Where("activity_id IN (?)", due).
		Returning("activity_id, subject_id, due_at, expires_at, ended, recorded_at").Scan(ctx)
	return claimed, err
}

// release makes claimed work due again. Unless the search failed, work that had expired before it
// is deleted.
func (c *Calls) release(ctx context.Context, claimed []hangUp, searchFailed bool) error {
	var again, done []uuid.UUID
	for _, work := range claimed {
		if work.hadExpired() && !searchFailed {
			done = append(done, work.ActivityID)
		} else {
			again = append(again, work.ActivityID)
		}
	}
	if len(done) > 0 {
		_, err := c.db.NewDelete().Model((*hangUp)(nil)).Where("activity_id IN (?)", bun.List(done)).Exec(ctx)
		if err != nil {
			return err
		}
	}
	if len(again) == 0 {
		return nil
	}
	lease := claimed[0].DueAt
	_, err := c.db.NewUpdate().Model((*hangUp)(nil)).Set("due_at = ?", lease.Add(hangUpInterval-hangUpLease)).
		Where("activity_id IN (?)", bun.List(again)).Where("due_at = ?", lease).Exec(ctx)
	return err
}

// hadExpired reports whether no token was valid any more when the work was claimed.
func (h hangUp) hadExpired() bool { return !h.ExpiresAt.After(h.DueAt.Add(-hangUpLease)) }
