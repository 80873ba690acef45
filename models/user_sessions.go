package models

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// Sessions returns a user's sessions that have not ended, the latest seen
// first; the error may be [ErrUnavailable].
func (s *Store) Sessions(ctx context.Context, accountID, userID uuid.UUID) ([]Session, error) {
	now := s.clock()
	sessions := []Session{}
	err := s.db.NewSelect().Model(&sessions).
		Where("session.user_id = (SELECT id FROM users WHERE account_id = ? AND id = ?)", accountID, userID).
		Where("session.expires_at > ? AND session.last_seen_at > ?", now, now.Add(-s.sessionIdle)).
		OrderExpr("session.id DESC").Scan(ctx)
	if err != nil {
		return nil, failed("list sessions", err)
	}
	for i := range sessions {
		sessions[i].LastSeenAt = s.seen.latest(sessions[i].ID, sessions[i].LastSeenAt)
	}
	slices.SortStableFunc(sessions, func(a, b Session) int { return b.LastSeenAt.Compare(a.LastSeenAt) })
	return sessions, nil
}

// RevokeSession ends one of a user's sessions from another and records the
// activity. It returns [ErrSessionNotFound] if it is not the user's or has
// ended already, or [ErrUnavailable].
func (s *Store) RevokeSession(ctx context.Context, accountID, userID, sessionID uuid.UUID, actor Actor) error {
	ended, err := s.endSessions(ctx, accountID, actor, ActionSessionRevoked, func(q *bun.DeleteQuery) *bun.DeleteQuery {
		return q.Where("id = ? AND user_id = ?", sessionID, userID)
	})
	if err == nil && ended == 0 {
		err = ErrSessionNotFound
	}
	return err
}

// RevokeOtherSessions ends all of a user's sessions but one, records the
// activity and returns how many there were; the error may be
// [ErrUnavailable].
func (s *Store) RevokeOtherSessions(ctx context.Context, accountID, userID, keep uuid.UUID, actor Actor) (int, error) {
	return s.endSessions(ctx, accountID, actor, ActionSessionRevoked, func(q *bun.DeleteQuery) *bun.DeleteQuery {
		return q.Where("user_id = ? AND id <> ?", userID, keep)
	})
}

// endSessions ends the account's sessions that which selects.
func (s *Store) endSessions(ctx context.Context, accountID uuid.UUID, actor Actor, action Action, which func(*bun.DeleteQuery) *bun.DeleteQuery) (int, error) {
	var ended int
	err := s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) (err error) {
		ended, err = s.endSessionsIn(ctx, tx, accountID, actor, action, which)
		return err
	})
	if err != nil {
		return 0, failed("end sessions", err)
	}
	return ended, nil
}

func (s *Store) endSessionsIn(ctx context.Context, tx bun.Tx, accountID uuid.UUID, actor Actor, action Action, which func(*bun.DeleteQuery) *bun.DeleteQuery) (int, error) {
	var sessions []Session
	query := tx.NewDelete().Model(&sessions).
		Where("user_id IN (SELECT id FROM users WHERE account_id = ?)", accountID).Returning("id, user_agent")
	if err := which(query).Scan(ctx); err != nil {
		return 0, err
	}
	for _, session := range sessions {
		if err := s.record(ctx, tx, accountID, actor, action, session.ID, session.UserAgent); err != nil {
			return 0, err
		}
	}
	return len(sessions), nil
}
