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

// OpenCalls returns the calls of a key, or nil without a LiveKit server.
func (s *Store) OpenCalls(ctx context.Context, key APIKey) *OpenCalls {
	if s.liveKit == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, openCallsTimeout)
	defer cancel()
	rooms, err := s.liveKit.Rooms(ctx)
	if err != nil {
		s.logger.WarnContext(ctx, "open calls are unknown", slog.Any("error", err))
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

// endCallsRegularly ends calls until background ends. It logs the first of several failures in a
// row: the next look at the queue tries again.
func (s *Store) endCallsRegularly(background context.Context) {
	ticker := time.NewTicker(callsInterval)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-background.Done():
			return
		case <-ticker.C:
		}
		tried, err := s.endDueCalls(background)
		switch {
		case background.Err() != nil:
			return
		case err != nil && !failing:
			s.logger.ErrorContext(background, "cannot end calls; retrying", slog.Any("error", err))
			failing = true
		case err == nil && tried && failing:
			s.logger.InfoContext(background, "calls are ended again")
			failing = false
		}
	}
}

// endDueCalls works on the queue once. It reports whether there was work.
func (s *Store) endDueCalls(ctx context.Context) (tried bool, err error) {
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	due, err := s.claimHangUps(limited)
	if err != nil || len(due) == 0 {
		return false, failed("claim calls to end", err)
	}
	subjects, err := s.callSubjects(limited, due)
	if err != nil {
		return true, failed("find calls to end", err)
	}
	if err = s.endCallsOf(ctx, subjects); err != nil {
		s.hangUpFailures.Add(1)
	}
	return true, errors.Join(err, s.finishHangUps(ctx, due, err != nil))
}

// finishHangUps records the calls that a search has ended, and releases its work.
func (s *Store) finishHangUps(ctx context.Context, due []hangUp, searchFailed bool) error {
	// The calls have ended, so they are recorded even if the portal is stopping.
	ctx = context.WithoutCancel(ctx)
	for i := range due {
		if err := s.recordEndedCalls(ctx, &due[i]); err != nil {
			return failed("record ended calls", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return failed("release calls to end", s.releaseHangUps(ctx, due, searchFailed))
}

// callSubjects maps keys and agents to the work on their calls. An account is replaced by its
// agents: removed agents have work of their own.
func (s *Store) callSubjects(ctx context.Context, due []hangUp) (map[uuid.UUID]*hangUp, error) {
	subjects := make(map[uuid.UUID]*hangUp, len(due))
	ids := make([]uuid.UUID, len(due))
	for i := range due {
		ids[i] = due[i].SubjectID
		subjects[ids[i]] = &due[i]
	}
	var agents []Agent
	err := s.db.NewSelect().Model(&agents).Column("id", "account_id").Where("account_id IN (?)", bun.List(ids)).Scan(ctx)
	for _, agent := range agents {
		if subjects[agent.ID] == nil {
			subjects[agent.ID] = subjects[agent.AccountID]
		}
	}
	return subjects, err
}

// endCallsOf ends the calls of keys and agents and counts them.
func (s *Store) endCallsOf(ctx context.Context, subjects map[uuid.UUID]*hangUp) error {
	ctx, cancel := context.WithTimeout(ctx, endCallsTimeout)
	defer cancel()
	rooms, err := s.liveKit.Rooms(ctx)
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
			group.Go(func() error { return s.endCall(ctx, room, work) })
		}
	}
	return group.Wait()
}

func (s *Store) endCall(ctx context.Context, room livekit.Room, work *hangUp) error {
	deleted, err := s.liveKit.EndRoom(ctx, room)
	if deleted {
		atomic.AddInt64(&work.Ended, 1)
	}
	return err
}

// recordEndedCalls records an activity with the number of ended calls, by the actor of the
// revocation. Within [endedCallsInterval] of the last activity it only stores the number, except
// for the last time.
func (s *Store) recordEndedCalls(ctx context.Context, work *hangUp) error {
	if work.Ended == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	now := s.clock()
	return s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if work.RecordedAt == nil || work.hadExpired() || now.Sub(*work.RecordedAt) >= endedCallsInterval {
			if err := s.recordCalls(ctx, tx, work); err != nil {
				return err
			}
			work.Ended, work.RecordedAt = 0, &now
		}
		_, err := tx.NewUpdate().Model(work).Column("ended", "recorded_at").WherePK().Exec(ctx)
		return err
	})
}

func (s *Store) recordCalls(ctx context.Context, tx bun.Tx, work *hangUp) error {
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
	return s.recordActivity(ctx, tx, actor, Activity{
		AccountID: cause.AccountID, Action: ActionCallsEnded, SubjectID: cause.SubjectID, Label: cause.Label, Count: work.Ended,
	})
}
