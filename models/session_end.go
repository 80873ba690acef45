package models

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"github.com/google/uuid"
)

// maxSessions is the number of sessions that a user can have. Above that, a sign-in ends the least
// recently used one.
const maxSessions = 100

// End signs a user out: it deletes the session and records the activity. If the session has already
// ended, the error is [ErrSessionNotFound].
func (s *Sessions) End(ctx context.Context, accountID, sessionID uuid.UUID, actor Actor) error {
	return s.end(ctx, accountID, actor, ActionSignedOut, "id = ?", sessionID)
}

// Revoke ends one of a user's sessions from another session and records the activity. If the user
// has no such session, the error is [ErrSessionNotFound].
func (s *Sessions) Revoke(ctx context.Context, accountID, userID, sessionID uuid.UUID, actor Actor) error {
	return s.end(ctx, accountID, actor, ActionSessionRevoked, "id = ? AND user_id = ?", sessionID, userID)
}

// RevokeOthers ends all of a user's sessions except one and records their number as one activity.
func (s *Sessions) RevokeOthers(ctx context.Context, accountID, userID, keep uuid.UUID, actor Actor) error {
	return s.db.InTx(ctx, "end sessions", func(ctx context.Context, tx Tx) error {
		return endOtherSessions(ctx, tx, accountID, userID, keep, actor)
	})
}

// end deletes the account's session that matches where, and records the activity.
func (s *Sessions) end(ctx context.Context, accountID uuid.UUID, actor Actor, action Action, where string, args ...any) error {
	err := s.db.InTx(ctx, "end session", func(ctx context.Context, tx Tx) error {
		var session Session
		err := tx.NewDelete().Model(&session).Where(where, args...).
			Where("user_id IN (SELECT id FROM users WHERE account_id = ?)", accountID).
			Returning("id, user_agent").Scan(ctx)
		if err != nil {
			return err
		}
		return tx.Record(ctx, accountID, actor, action, session.ID, session.UserAgent)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return ErrSessionNotFound
	}
	return err
}

// endOtherSessions deletes all of a user's sessions except keep, and records their number as one
// activity.
func endOtherSessions(ctx context.Context, tx Tx, accountID, userID, keep uuid.UUID, actor Actor) error {
	result, err := tx.NewDelete().Model((*Session)(nil)).Where("user_id = ? AND id <> ?", userID, keep).
		Where("user_id IN (SELECT id FROM users WHERE account_id = ?)", accountID).Exec(ctx)
	if err != nil {
		return err
	}
	ended, err := result.RowsAffected()
	if err != nil || ended == 0 {
		return err
	}
	return tx.RecordActivity(ctx, actor, Activity{
		AccountID: accountID, Action: ActionSessionsRevoked, SubjectID: &userID, Count: ended,
	})
}

// endOldestSessions makes room for a new session: it deletes the user's least recently used
// sessions above the limit.
func endOldestSessions(ctx context.Context, tx Tx, userID, newest uuid.UUID) error {
	old := tx.NewSelect().Model((*Session)(nil)).Column("id").Where("user_id = ? AND id <> ?", userID, newest).
		OrderExpr("last_seen_at DESC, id DESC").Offset(maxSessions - 1).Limit(math.MaxInt32)
	return tx.Delete(ctx, (*Session)(nil), "id IN (?)", old)
}

// endAllSessions deletes the sessions, the pending sign-ins and the links of the users that match
// where, and the invitations from them.
func endAllSessions(ctx context.Context, tx Tx, where string, args ...any) error {
	users := tx.NewSelect().Model((*User)(nil)).Column("id").Where(where, args...)
	for _, model := range []any{(*Session)(nil), (*signInLink)(nil), (*passwordResetLink)(nil), (*emailChange)(nil), (*pendingSignIn)(nil)} {
		if err := tx.Delete(ctx, model, "user_id IN (?)", users); err != nil {
			return err
		}
	}
	return tx.Delete(ctx, (*Invitation)(nil), "inviter_id IN (?)", users)
}
