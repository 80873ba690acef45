package models

import (
	"bytes"
	"context"
	"errors"
)

// ChangeEmail sets a new email for the user of a session and records the activity. The user's
// sessions continue.
//
// For the password, it returns [ErrWrongCredentials] or a [*SignInLimitError], as
// [Credentials.ChangePassword] does, or [ErrSignInTooOld] if the user has no password. For the
// email, it returns [ErrEmailTaken], or an [*InvalidError] for the field "email" if the email is
// malformed, is the current one or makes the password too easy to guess. The error may also be
// [ErrUnavailable]. ChangeEmail sets its own deadlines.
func (c *Credentials) ChangeEmail(ctx context.Context, session Session, password, email string, actor Actor) error {
	email, invalid := cleanEmail(email)
	if invalid == nil && email == session.Email {
		invalid = &InvalidError{"email", "This is already your email."}
	}
	user, err := c.authorize(ctx, session, password, actor)
	switch {
	case errors.Is(err, ErrWrongCredentials):
		return errors.Join(err, invalid)
	case err != nil:
		return err
	case invalid != nil:
		return invalid
	case !session.NoPassword && checkPassword(password, email) != nil:
		return &InvalidError{"email", "Your password is too similar to this email. Change your password first."}
	}
	ctx, cancel := context.WithTimeout(ctx, c.db.timeout)
	defer cancel()
	err = c.db.InTx(ctx, "change email", func(ctx context.Context, tx Tx) error {
		// If the password or the email has changed since, this change fails.
		result, err := tx.NewUpdate().Model((*User)(nil)).Set("email = ?, email_hash = ?", email, hashEmail(email)).
			Where("id = ? AND password_hash = ? AND email_hash = ?", user.ID, user.PasswordHash, user.EmailHash).Exec(ctx)
		if err := unlessAffected(result, err, ErrWrongCredentials); err != nil {
			return err
		}
		// Links were sent to the old address.
		if err := endPasswordResets(ctx, tx, user.ID); err != nil {
			return err
		}
		return tx.RecordActivity(ctx, actor, Activity{
			AccountID: user.AccountID, Action: ActionEmailChanged, SubjectID: &user.ID, Label: email, FormerLabel: user.Email,
		})
	})
	if err == nil || errors.Is(err, ErrWrongCredentials) {
		return err
	}
	if bytes.Equal(hashEmail(email), user.EmailHash) {
		return failed("change email", err)
	}
	// The hash is unique, so the update may have failed because another user has the email.
	taken, lookupErr := c.db.NewSelect().Model((*User)(nil)).Where("email_hash = ?", hashEmail(email)).Exists(ctx)
	if lookupErr == nil && taken {
		return ErrEmailTaken
	}
	return failed("change email", err)
}
