package models

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"portal/models/password"
)

// ChangePassword sets a new password for the user of a session, ends the user's other sessions, and
// records the activity. It returns a new token for the session, so that a stolen copy of the old
// token is useless. A user without a password sets the first one: the old password is ignored,
// and the error is [ErrSignInTooOld] unless the sign-in is fresh.
//
// It returns [ErrWrongCredentials] if the old password is wrong, and a [*SignInLimitError] after
// too many wrong passwords in this session. It returns an [*InvalidError] for the field "password"
// if the new password breaks a rule. If both passwords are wrong, the two errors are joined. The
// error may also be [ErrPasswordsOff], [ErrSessionNotFound] or [ErrUnavailable]. ChangePassword
// sets its own deadlines.
func (c *Credentials) ChangePassword(ctx context.Context, session Session, oldPassword, newPassword string, actor Actor) (token string, err error) {
	if c.passwords.off {
		return "", ErrPasswordsOff
	}
	invalid := checkPassword(newPassword, session.Email, session.AccountName)
	user, err := c.authorize(ctx, session, oldPassword, actor)
	switch {
	case errors.Is(err, ErrWrongCredentials):
		return "", errors.Join(err, invalid)
	case err != nil:
		return "", err
	case invalid != nil:
		return "", invalid
	}
	token = newToken()
	err = c.setPassword(ctx, knownPlace(user.Email), newPassword, func(ctx context.Context, tx Tx, hash string) error {
		// Of two concurrent changes, the second finds that its old password is no longer
		// stored.
		if err := tx.lockPassword(ctx, user); err != nil {
			return err
		}
		result, err := tx.NewUpdate().Model((*Session)(nil)).Set("reference_hash = ?", hashToken(token)).
			Where("id = ? AND user_id = ?", session.ID, user.ID).Exec(ctx)
		if err := unlessAffected(result, err, ErrSessionNotFound); err != nil {
			return err
		}
		if err := forgetRefusedCodes(ctx, tx, user.ID); err != nil {
			return err
		}
		return replacePassword(ctx, tx, user, hash, session.ID, actor, ActionPasswordChanged)
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// authorize returns the user of a session if the session may change the password and the email: if
// the password is right or, for a user without one, if the sign-in is fresh. The caller must check
// in its transaction that the user's hash is still the same.
func (c *Credentials) authorize(ctx context.Context, session Session, password string, actor Actor) (User, error) {
	if !session.NoPassword {
		return c.passwords.verifyCurrent(ctx, session, password, actor)
	}
	if !session.Fresh(c.db.Now()) {
		return User{}, ErrSignInTooOld
	}
	ctx, cancel := context.WithTimeout(ctx, c.db.timeout)
	defer cancel()
	user, err := findUser(ctx, c.db, "u.account_id = ? AND u.id = ?", session.AccountID, session.UserID)
	if err != nil {
		return User{}, failed("find user", err)
	}
	// A concurrent request may have set a password.
	if c.passwords.has(user) {
		return User{}, ErrWrongCredentials
	}
	return user, nil
}

// verifyCurrent returns the user of a session if the password is right. Otherwise it
// returns [ErrWrongCredentials], or a [*SignInLimitError] after too many wrong passwords in this
// session. Wrong passwords at sign-in do not count, because they must not stop a signed-in user.
func (p *passwords) verifyCurrent(ctx context.Context, session Session, password string, actor Actor) (User, error) {
	subject := [][]byte{signInSubject("session", session.ID.String())}
	return p.verify(ctx, session.Email, password, attempt{
		limited: subject, counted: subject, place: knownPlace(session.Email),
		actor: actor, action: ActionPasswordRefused,
	})
}

// hashQueueTimeout limits the wait for password hashing. The wait does not count against [Timeout],
// which limits each use of the database.
const hashQueueTimeout = 8 * time.Second

// waitToHash waits for a turn to hash passwords. The error may be [ErrUnavailable].
func (p *passwords) waitToHash(ctx context.Context, place password.Place) (*password.Turn, error) {
	ctx, cancel := context.WithTimeout(ctx, hashQueueTimeout)
	defer cancel()
	turn, err := p.hasher.Wait(ctx, place)
	if errors.Is(err, password.ErrQueueFull) {
		err = fmt.Errorf("%w: %w: %w", ErrUnavailable, ErrBusy, err)
	}
	return turn, failed("wait in the queue for password hashing", err)
}

// hash returns the hash of a new password.
func (p *passwords) hash(ctx context.Context, place password.Place, password string) (string, error) {
	turn, err := p.waitToHash(ctx, place)
	if err != nil {
		return "", err
	}
	defer turn.Done()
	return turn.Hash(password), nil
}

// checkPassword returns an [*InvalidError] for the field "password" if a new password breaks a
// rule. A password must not be one of words, such as the user's email and the account's name.
func checkPassword(newPassword string, words ...string) error {
	if problem := password.Problem(newPassword, words...); problem != "" {
		return &InvalidError{"password", problem}
	}
	return nil
}

// ResetPassword sets a new password for the user with this email, ends all of the user's sessions,
// and records the activity. It is for operators. It returns an [*InvalidError] for the field
// "password", [ErrUserNotFound], or [ErrUnavailable].
func (c *Credentials) ResetPassword(ctx context.Context, email, password string) error {
	if err := checkPassword(password, email); err != nil {
		return err
	}
	user, err := findUser(ctx, c.db, "u.email_hash = ?", hashEmail(email))
	if err != nil {
		return failed("find user", err)
	}
	// The old hash is not compared: an intruder must not be able to block the reset by changing
	// the password at the same time.
	return c.setPassword(ctx, knownPlace(user.Email), password, func(ctx context.Context, tx Tx, hash string) error {
		if err := replacePassword(ctx, tx, user, hash, uuid.Nil, Operator(), ActionPasswordReset); err != nil {
			return err
		}
		return forgetRefusedCodes(ctx, tx, user.ID)
	})
}

// setPassword hashes a new password and calls store with the hash in a transaction.
func (c *Credentials) setPassword(ctx context.Context, place password.Place, newPassword string, store func(ctx context.Context, tx Tx, hash string) error) error {
	hash, err := c.passwords.hash(ctx, place, newPassword)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.db.timeout)
	defer cancel()
	err = c.db.InTx(ctx, "set password", func(ctx context.Context, tx Tx) error { return store(ctx, tx, hash) })
	return err
}

// replacePassword stores the new hash, ends the user's sessions except keep and the links that sign
// in or set a password, and records the activity.
func replacePassword(ctx context.Context, tx Tx, user User, hash string, keep uuid.UUID, actor Actor, action Action) error {
	result, err := tx.NewUpdate().Model((*User)(nil)).Set("password_hash = ?", hash).Where("id = ?", user.ID).Exec(ctx)
	if err := unlessAffected(result, err, ErrUserNotFound); err != nil {
		return err
	}
	if err := tx.Record(ctx, user.AccountID, actor, action, user.ID, user.Email); err != nil {
		return err
	}
	if err := endPendingSignIns(ctx, tx, user.ID); err != nil {
		return err
	}
	if err := endPasswordResets(ctx, tx, user.ID); err != nil {
		return err
	}
	if err := tx.Delete(ctx, (*signInLink)(nil), "user_id = ?", user.ID); err != nil {
		return err
	}
	return endOtherSessions(ctx, tx, user.AccountID, user.ID, keep, actor)
}
