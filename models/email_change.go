package models

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// emailChangeLife is how long a new email can be confirmed.
const emailChangeLife = 30 * time.Minute

// emailChange is a user's request for a new email, which the user confirms with a link sent to it.
// A user has at most one.
type emailChange struct {
	bun.BaseModel `bun:"table:email_changes,alias:change"`

	UserID uuid.UUID `bun:",pk"`
	Email  string    // the new one
	MailID uuid.UUID // of the mail with the link
	// SHA-256 of the token in the link; nil until the mail is sent.
	TokenHash []byte `bun:",nullzero"`
	ExpiresAt time.Time
}

// RequestEmailChange queues a mail with a link to the new email for the user of a session. Only
// [Credentials.ConfirmEmail] changes the email. An earlier request of the user ends. If another
// user has the email, no mail is sent, and the result is the same. RequestEmailChange sets its own
// deadlines.
//
// The errors for the password are those of [Credentials.ChangePassword], but a user without a
// password needs none. If the email is malformed, is the current one, in any letter case, or makes
// the password too easy to guess, the error is an [*InvalidError] for the field "email".
func (c *Credentials) RequestEmailChange(ctx context.Context, session Session, password, email string, actor Actor) error {
	email, invalid := cleanEmail(email)
	if invalid == nil && bytes.Equal(hashEmail(email), hashEmail(session.Email)) {
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
	return c.db.InTx(ctx, "request a change of email", func(ctx context.Context, tx Tx) error {
		if err := tx.lockPassword(ctx, user); err != nil {
			return err
		}
		if err := tx.deleteOf(ctx, user.ID, emailChanges.table); err != nil {
			return err
		}
		mails := []Mail{{Kind: MailEmailConfirmation, AccountID: &user.AccountID, Recipient: email}}
		queued, err := queueMails(ctx, tx, mails)
		if err != nil || !queued {
			return err
		}
		return tx.Insert(ctx, &emailChange{
			UserID: user.ID, Email: email, MailID: mails[0].ID, ExpiresAt: tx.Now().Add(emailChangeLife),
		})
	})
}

// createEmailChangeLink returns the token of the link in a queued mail, which replaces that of an
// earlier attempt. If the request has ended or a user has the email, the token is empty.
func createEmailChangeLink(ctx context.Context, tx Tx, mail Mail) (token string, err error) {
	taken := tx.NewSelect().Model((*User)(nil)).Column("id").Where("email_hash = ?", hashEmail(mail.Recipient))
	token = newToken()
	changed, err := affected(tx.NewUpdate().Model((*emailChange)(nil)).Set("token_hash = ?", hashToken(token)).
		Where("mail_id = ? AND expires_at > ? AND NOT EXISTS (?)", mail.ID, tx.Now(), taken).Exec(ctx))
	if err != nil || changed == 0 {
		return "", err
	}
	return token, nil
}

// NewEmail returns the email that the link with this token confirms. The error may be
// [ErrMailLinkInvalid] or [ErrSignInDisabled].
func (c *Credentials) NewEmail(ctx context.Context, token string) (email string, err error) {
	if _, err = emailChanges.findUser(ctx, c.db, token, c.db.Now()); err == nil {
		err = c.db.NewSelect().Model((*emailChange)(nil)).Column("email").Where("token_hash = ?", hashToken(token)).Scan(ctx, &email)
	}
	return email, failed("find a change of email", noRows(err, ErrMailLinkInvalid))
}

// ConfirmEmail gives the user of a link, whose sessions continue, the new email and returns the
// email. The error may be one of [Credentials.NewEmail] or [ErrEmailTaken].
func (c *Credentials) ConfirmEmail(ctx context.Context, token, address string) (email string, err error) {
	err = c.db.InTx(ctx, "confirm email", func(ctx context.Context, tx Tx) error {
		user, err := emailChanges.findUser(ctx, tx, token, tx.Now())
		if err != nil {
			return err
		}
		if err := tx.lockEnabled(ctx, user.AccountID, user.ID); err != nil {
			return err
		}
		err = tx.NewDelete().Model((*emailChange)(nil)).Where("token_hash = ?", hashToken(token)).Returning("email").Scan(ctx, &email)
		if err != nil {
			return noRows(err, ErrMailLinkInvalid)
		}
		return changeEmail(ctx, tx, user.ID, email, UserActor(user.ID, address))
	})
	return email, c.unlessTaken(ctx, email, err)
}

// ChangeEmail gives the user with the old email a new one. It is for operators. The error may be an
// [*InvalidError] for the field "email", [ErrUserNotFound] or [ErrEmailTaken].
func (c *Credentials) ChangeEmail(ctx context.Context, old, email string) error {
	email, err := cleanEmail(email)
	if err != nil {
		return err
	}
	err = c.db.InTx(ctx, "change email", func(ctx context.Context, tx Tx) error {
		user, err := findUser(ctx, tx, "u.email_hash = ?", hashEmail(old))
		if err != nil || user.Email == email {
			return err
		}
		if err := tx.lockUser(ctx, user.AccountID, user.ID); err != nil {
			return err
		}
		return changeEmail(ctx, tx, user.ID, email, Operator())
	})
	return c.unlessTaken(ctx, email, err)
}

// changeEmail stores the new email of a user whose row is locked, ends the known browsers and the
// links that were sent to an email of the user, and records the activity.
func changeEmail(ctx context.Context, tx Tx, userID uuid.UUID, email string, actor Actor) error {
	user, err := findUser(ctx, tx, "u.id = ?", userID)
	if err != nil {
		return err
	}
	_, err = tx.NewUpdate().Model((*User)(nil)).
		Set("email = ?, email_hash = ?, known_browsers = known_browsers + 1", email, hashEmail(email)).
		Where("id = ?", userID).Exec(ctx)
	if err != nil {
		return err
	}
	if err := tx.deleteOf(ctx, userID, passwordResetLinks.table, emailChanges.table); err != nil {
		return err
	}
	return tx.recordRename(ctx, user.AccountID, actor, ActionEmailChanged, userID, email, user.Email)
}

// unlessTaken returns [ErrEmailTaken] in place of the error of a change if a user has the email:
// because the hash is unique, the change may have failed for that reason.
func (c *Credentials) unlessTaken(ctx context.Context, email string, err error) error {
	if err == nil || email == "" || errors.Is(err, ErrUserNotFound) {
		return err
	}
	taken, lookupErr := c.db.NewSelect().Model((*User)(nil)).Where("email_hash = ?", hashEmail(email)).Exists(ctx)
	if lookupErr == nil && taken {
		return ErrEmailTaken
	}
	return err
}
