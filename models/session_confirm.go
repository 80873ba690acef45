package models

import (
	"context"

	"github.com/uptrace/bun"
)

// ConfirmPassword checks the password of the user of a session, and makes the session's sign-in
// fresh again. It returns a new token for the session, so that a stolen copy of the old token does
// not become fresh.
//
// The error may be [ErrSignInTooOld] if the user has no password, [ErrWrongCredentials], a
// [*SignInLimitError] after too many wrong passwords in this session, [ErrSessionNotFound] or
// [ErrUnavailable]. ConfirmPassword sets its own deadlines.
func (s *Store) ConfirmPassword(ctx context.Context, session Session, password string, actor Actor) (token string, err error) {
	if session.NoPassword {
		return "", ErrSignInTooOld
	}
	user, err := s.verifyCurrentPassword(ctx, session, password, actor)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	token = newToken()
	err = s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if err := s.lockPassword(ctx, tx, user); err != nil {
			return err
		}
		result, err := tx.NewUpdate().Model((*Session)(nil)).Set("reference_hash = ?, confirmed_at = ?", hashToken(token), s.clock()).
			Where("id = ? AND user_id = ?", session.ID, user.ID).Exec(ctx)
		return unlessAffected(result, err, ErrSessionNotFound)
	})
	if err != nil {
		return "", failed("confirm password", err)
	}
	return token, nil
}
