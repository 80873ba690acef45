package models

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// ChangePassword gives the user of a session another password, which takes the
// old one, ends the user's other sessions, and records the activity. It returns
// the session's reference from now on: who has copied the one before is out too.
//
// It returns [ErrWrongCredentials] or a [*SignInLimitError] for the old
// password, as [Store.VerifyPassword] does, an [*InvalidError] for the field
// "password" about the new one, the first and the last of these joined if both
// are wrong, [ErrSessionNotFound] if the session has ended meanwhile, or
// [ErrUnavailable]. It bounds its own time.
func (s *Store) ChangePassword(ctx context.Context, session Session, oldPassword, newPassword string, actor Actor) (reference string, err error) {
	invalid := checkPassword(newPassword, session.Email, session.AccountName)
	user, err := s.VerifyPassword(ctx, session.Email, oldPassword, actor.Address)
	switch {
	case errors.Is(err, ErrWrongCredentials):
		return "", errors.Join(err, invalid)
	case err != nil:
		return "", err
	case invalid != nil:
		return "", invalid
	}
	reference = newReference()
	change := passwordChange{
		// Of two changes at once, the second finds its old password gone.
		over: user.PasswordHash, actor: actor, action: ActionPasswordChanged,
		keep: session.ID, reference: hashReference(reference),
	}
	if err := s.setPassword(ctx, user, newPassword, change); err != nil {
		return "", err
	}
	return reference, nil
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
	return s.setPassword(ctx, user, password, passwordChange{actor: Operator(), action: ActionPasswordReset})
}

// passwordChange is what becomes of a user with their password.
type passwordChange struct {
	over      string // the hash of the password that it takes the place of; empty: whatever is there
	actor     Actor
	action    Action
	keep      uuid.UUID // the one session that goes on; zero: none
	reference []byte    // the hash of that session's new reference
}

// setPassword returns [ErrWrongCredentials] if the password is not the one that
// the change is over, and [ErrSessionNotFound] if the one to keep has ended.
func (s *Store) setPassword(ctx context.Context, user User, password string, change passwordChange) error {
	queued, cancel := context.WithTimeout(ctx, signInQueue)
	defer cancel()
	hash, err := s.passwords.hash(queued, password)
	if err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, Timeout)
	defer cancel()
	err = s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		result, err := tx.NewUpdate().Model((*User)(nil)).Set("password_hash = ?", hash).
			Where("id = ? AND ? IN ('', password_hash)", user.ID, change.over).Exec(ctx)
		if err := unlessAffected(result, err, ErrWrongCredentials); err != nil {
			return err
		}
		if err := s.record(ctx, tx, user.AccountID, change.actor, change.action, user.ID, user.Email); err != nil {
			return err
		}
		if change.keep != uuid.Nil {
			result, err := tx.NewUpdate().Model((*Session)(nil)).Set("reference_hash = ?", change.reference).
				Where("id = ? AND user_id = ?", change.keep, user.ID).Exec(ctx)
			if err := unlessAffected(result, err, ErrSessionNotFound); err != nil {
				return err
			}
		}
		_, err = s.endSessionsIn(ctx, tx, user.AccountID, change.actor, ActionSessionRevoked, func(q *bun.DeleteQuery) *bun.DeleteQuery {
			return q.Where("user_id = ? AND id <> ?", user.ID, change.keep)
		})
		return err
	})
	if err != nil {
		return failed("set password", err)
	}
	return nil
}
