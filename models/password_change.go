package models

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"portal/models/password"
)

// ChangePassword sets a new password for the user of a session, ends the user's other sessions, and
// records the activity. It returns a new token for the session, so that a stolen copy of the old
// token is useless. ChangePassword sets its own deadlines.
//
// If the user has no password, the old password is ignored, and the error is [ErrSignInTooOld]
// unless the sign-in is fresh. If the old password is wrong, the error is [ErrWrongCredentials], or
// a [*SignInLimitError] after too many in this session. If the new password breaks a rule, it is an
// [*InvalidError] for the field "password". If both are wrong, the two errors are joined.
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
		return replacePassword(ctx, tx, &user, hash, session.ID, actor, ActionPasswordChanged)
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// authorize returns the user of a session if the session may change the password and the email: if
// the password is right or, for a user without one, if the sign-in is fresh. In its transaction,
// the caller must check that the user's hash is still the same.
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

// ResetPassword sets a new password for the user with this email, ends all of the user's sessions,
// and records the activity. It is for operators. The error may be an [*InvalidError] for the field
// "password" or [ErrUserNotFound].
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
		if err := replacePassword(ctx, tx, &user, hash, uuid.Nil, Operator(), ActionPasswordReset); err != nil {
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
	return c.db.InTx(ctx, "set password", func(ctx context.Context, tx Tx) error { return store(ctx, tx, hash) })
}

// replacePassword stores the new hash, also in user, and records the activity. Except for the
// session keep, it ends the user's sessions, the known browsers and the links that sign in, set a
// password or confirm an email.
func replacePassword(ctx context.Context, tx Tx, user *User, hash string, keep uuid.UUID, actor Actor, action Action) error {
	err := tx.NewUpdate().Model(user).Set("password_hash = ?, known_browsers = known_browsers + 1", hash).
		Where("id = ?", user.ID).Returning("password_hash, known_browsers").Scan(ctx)
	if err != nil {
		return noRows(err, ErrUserNotFound)
	}
	if err := tx.Record(ctx, user.AccountID, actor, action, user.ID, user.Email); err != nil {
		return err
	}
	err = tx.deleteOf(ctx, user.ID, pendingSignIns.table, passwordResetLinks.table, emailChanges.table, signInLinks.table)
	if err != nil {
		return err
	}
	return endOtherSessions(ctx, tx, user.AccountID, user.ID, keep, actor)
}
