package models

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// ChangePassword gives the user of a session another password, which takes the
// old one, ends the user's other sessions, and records the activity.
//
// It returns [ErrWrongCredentials] or a [*SignInLimitError] for the old
// password, as [Store.VerifyPassword] does, an [*InvalidError] for the field
// "password" about the new one, or [ErrUnavailable]. It bounds its own time.
func (s *Store) ChangePassword(ctx context.Context, session Session, oldPassword, newPassword string, actor Actor) error {
	if err := checkPassword(newPassword, session.Email, session.AccountName); err != nil {
		return err
	}
	user, err := s.VerifyPassword(ctx, session.Email, oldPassword, actor.Address)
	if err != nil {
		return err
	}
	// Only over the password that was verified: of two changes at once, the
	// second finds its old password gone.
	return s.setPassword(ctx, user, newPassword, actor, ActionPasswordChanged, session.ID, user.PasswordHash)
}

// ResetPassword gives the user with this e-mail another password, ends all of
// the user's sessions, and records the activity. It is for operators. It
// returns an [*InvalidError] for the field "password", [ErrAccountNotFound], or
// [ErrUnavailable].
func (s *Store) ResetPassword(ctx context.Context, email, password string) error {
	if err := checkPassword(password, email); err != nil {
		return err
	}
	var user User
	err := s.db.NewSelect().Model(&user).Where("email_hash = ?", hashEmail(email)).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrAccountNotFound
	}
	if err != nil {
		return failed("find user", err)
	}
	// Over whatever is there now: who has taken over the user's session must
	// not be able to get in the way by changing the password.
	return s.setPassword(ctx, user, password, Operator(), ActionPasswordReset, uuid.Nil, "")
}

// setPassword ends all of the user's sessions but keep. It returns
// [ErrWrongCredentials] unless the password has the hash over, or over is empty.
func (s *Store) setPassword(ctx context.Context, user User, password string, actor Actor, action Action, keep uuid.UUID, over string) error {
	queued, cancel := context.WithTimeout(ctx, signInQueue)
	defer cancel()
	hash, err := s.passwords.hash(queued, password)
	if err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, signInAnswer)
	defer cancel()
	err = s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		result, err := tx.NewUpdate().Model((*User)(nil)).Set("password_hash = ?", hash).
			Where("id = ? AND ? IN ('', password_hash)", user.ID, over).Exec(ctx)
		if err := unlessAffected(result, err, ErrWrongCredentials); err != nil {
			return err
		}
		if err := s.record(ctx, tx, user.AccountID, actor, action, user.ID, user.Email); err != nil {
			return err
		}
		_, err = s.endSessionsIn(ctx, tx, user.AccountID, actor, ActionSessionRevoked, func(q *bun.DeleteQuery) *bun.DeleteQuery {
			return q.Where("user_id = ? AND id <> ?", user.ID, keep)
		})
		return err
	})
	if err != nil {
		return failed("set password", err)
	}
	return nil
}
