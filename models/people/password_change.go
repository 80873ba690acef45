package people

import (
	"context"

	"github.com/google/uuid"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

// ChangePassword sets a new password for the user of a session, ends the user's other sessions, and
// records the activity. It returns a new token for the session, so that a stolen copy of the old
// token is useless. ChangePassword sets its own deadlines.
//
// If the user has no password, the old password is ignored, and the error is
// [value.ErrSignInTooOld] unless the sign-in is fresh. If the old password is wrong and the new one
// breaks a rule, the two errors are joined.
func (c *Credentials) ChangePassword(ctx context.Context, session Session, oldPassword, newPassword string, actor record.Actor) (token string, err error) {
	if c.passwords.off {
		return "", value.ErrPasswordsOff
	}
	if session.ByProvider {
		return "", value.ErrOnlyByProvider
	}
	invalid := checkPassword(newPassword, session.Email, session.AccountName)
	user, err := c.authorizeChange(ctx, session, oldPassword, invalid, actor)
	if err != nil {
		return "", err
	}
	hash, err := c.passwords.hash(ctx, knownPlace(user.Email), newPassword)
	if err != nil {
		return "", err
	}
	return db.InTx(ctx, c.db, "change password", func(ctx context.Context, tx db.Tx) (string, error) {
		token := value.NewToken()
		// Of two concurrent changes, the second finds that its old password is no longer
		// stored.
		if err := lockPassword(ctx, tx, user); err != nil {
			return "", err
		}
		if err := checkOwnSignIn(ctx, tx.DB, tx, user.ID); err != nil {
			return "", err
		}
		result, err := tx.NewUpdate().Model((*Session)(nil)).Set("token_hash = ?", value.HashToken(token)).
			Where("id = ? AND user_id = ?", session.ID, user.ID).Exec(ctx)
		if err := value.UnlessAffected(result, err, value.ErrSessionNotFound); err != nil {
			return "", err
		}
		if err := forgetRefusedCodes(ctx, tx, user.ID); err != nil {
			return "", err
		}
		return token, replacePassword(ctx, tx, &user, hash, session.ID, actor, record.ActionPasswordChanged)
	})
}

// ResetPassword sets a new password for the user with this email, ends all of the user's sessions,
// and records the activity. It is for operators.
func (c *Credentials) ResetPassword(ctx context.Context, email, password string) error {
	if err := checkPassword(password, email); err != nil {
		return err
	}
	user, err := FindUser(ctx, c.db, "u.email_hash = ?", value.StoredHash(email))
	if err != nil {
		return value.Failed("find user", err)
	}
	hash, err := c.passwords.hash(ctx, knownPlace(user.Email), password)
	if err != nil {
		return err
	}
	// The old hash is not compared: an intruder must not be able to block the reset by changing
	// the password at the same time.
	return c.db.InTx(ctx, "reset password", func(ctx context.Context, tx db.Tx) error {
		if err := replacePassword(ctx, tx, &user, hash, uuid.Nil, record.Operator(), record.ActionPasswordReset); err != nil {
			return err
		}
		return forgetRefusedCodes(ctx, tx, user.ID)
	})
}

// replacePassword stores the new hash, also in user, and records the activity. Except for the
// session keep, it ends the user's sessions, the known browsers and the links that sign in, set a
// password or confirm an email.
func replacePassword(ctx context.Context, tx db.Tx, user *User, hash string, keep uuid.UUID, actor record.Actor, action record.Action) error {
	err := tx.NewUpdate().Model(user).Set("password_hash = ?, known_browsers = known_browsers + 1", hash).
		Where("id = ?", user.ID).Returning("password_hash, known_browsers").Scan(ctx)
	if err != nil {
		return value.NoRows(err, value.ErrUserNotFound)
	}
	if err := record.Add(ctx, tx, actor, user.activity(action)); err != nil {
		return err
	}
	if err := tx.DeleteOf(ctx, user.ID, tokenTables...); err != nil {
		return err
	}
	return endOtherSessions(ctx, tx, user.AccountID, user.ID, keep, actor)
}
