package models

import (
	"context"
)

// Reauthenticate checks the password of the user of a session, and makes the session's sign-in
// fresh again. It returns a new token for the session, so that a stolen copy of the old token does
// not become fresh.
//
// The error may be [ErrSignInTooOld] if the user has no password, [ErrWrongCredentials], a
// [*SignInLimitError] after too many wrong passwords in this session, [ErrSessionNotFound] or
// [ErrUnavailable]. ConfirmPassword sets its own deadlines.
func (s *Sessions) Reauthenticate(ctx context.Context, session Session, password string, actor Actor) (token string, err error) {
	if session.NoPassword {
		return "", ErrSignInTooOld
	}
	user, err := s.passwords.verifyCurrent(ctx, session, password, actor)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, s.db.timeout)
	defer cancel()
	token = newToken()
	err = s.db.InTx(ctx, "confirm password", func(ctx context.Context, tx Tx) error {
		if err := tx.lockPassword(ctx, user); err != nil {
			return err
		}
		result, err := tx.NewUpdate().Model((*Session)(nil)).Set("reference_hash = ?, authenticated_at = ?", hashToken(token), tx.Now()).
			Where("id = ? AND user_id = ?", session.ID, user.ID).Exec(ctx)
		return unlessAffected(result, err, ErrSessionNotFound)
	})
	if err != nil {
		return "", err
	}
	return token, nil
}
