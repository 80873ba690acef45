package models

import (
	"context"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// EndSession signs a user out: it deletes the session and records the activity. It returns
// [ErrSessionNotFound] if the session has already ended, or [ErrUnavailable].
func (s *Store) EndSession(ctx context.Context, accountID, sessionID uuid.UUID, actor Actor) error {
	return s.endSession(ctx, accountID, actor, ActionSignedOut, "id = ?", sessionID)
}

// RevokeSession ends one of a user's sessions from another session and records the activity. It
// returns [ErrSessionNotFound] if the user has no such session, or [ErrUnavailable].
func (s *Store) RevokeSession(ctx context.Context, accountID, userID, sessionID uuid.UUID, actor Actor) error {
	return s.endSession(ctx, accountID, actor, ActionSessionRevoked, "id = ? AND user_id = ?", sessionID, userID)
}

// RevokeOtherSessions ends all of a user's sessions except one and records the activity. The error
// may be [ErrUnavailable].
func (s *Store) RevokeOtherSessions(ctx context.Context, accountID, userID, keep uuid.UUID, actor Actor) error {
	_, err := s.endSessions(ctx, s.db, accountID, actor, ActionSessionRevoked, "user_id = ? AND id <> ?", userID, keep)
	return err
}

func (s *Store) endSession(ctx context.Context, accountID uuid.UUID, actor Actor, action Action, where string, args ...any) error {
	ended, err := s.endSessions(ctx, s.db, accountID, actor, action, where, args...)
	if err == nil && ended == 0 {
		return ErrSessionNotFound
	}
	return err
}

// endSessions deletes the account's sessions that match where, records each and returns their
// number. In a transaction it is part of that transaction.
func (s *Store) endSessions(ctx context.Context, db bun.IDB, accountID uuid.UUID, actor Actor, action Action, where string, args ...any) (int, error) {
	var sessions []Session
	err := db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		err := tx.NewDelete().Model(&sessions).Where(where, args...).
			Where("user_id IN (SELECT id FROM users WHERE account_id = ?)", accountID).
			Returning("id, user_agent").Scan(ctx)
		if err != nil {
			return err
		}
		for _, session := range sessions {
			if err := s.record(ctx, tx, accountID, actor, action, session.ID, session.UserAgent); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, failed("end sessions", err)
	}
	return len(sessions), nil
}
