package people

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
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
// user has the email, no mail is sent, and the result is the same. A user without a password needs
// none. RequestEmailChange sets its own deadlines.
func (c *Credentials) RequestEmailChange(ctx context.Context, session Session, password, email string, actor record.Actor) error {
	email, invalid := value.CleanEmail(email)
	if invalid == nil && bytes.Equal(value.HashEmail(email), value.HashEmail(session.Email)) {
		invalid = &value.InvalidError{Field: "email", Message: "This is already your email."}
	}
	user, err := c.authorizeChange(ctx, session, password, invalid, actor)
	if err != nil {
		return err
	}
	if !session.NoPassword && checkPassword(password, email) != nil {
		return &value.InvalidError{Field: "email", Message: "Your password is too similar to this email. Change your password first."}
	}
	return c.db.InTx(ctx, "request a change of email", func(ctx context.Context, tx db.Tx) error {
		if err := lockPassword(ctx, tx, user); err != nil {
			return err
		}
		earlier := tx.NewSelect().Model((*emailChange)(nil)).Column("mail_id").Where("user_id = ?", user.ID)
		if err := record.DiscardMails(ctx, tx, "mail.id IN (?)", earlier); err != nil {
			return err
		}
		if err := tx.DeleteOf(ctx, user.ID, emailChanges.table); err != nil {
			return err
		}
		mail := record.Mail{ID: value.NewID(), Kind: record.MailEmailConfirmation, AccountID: &user.AccountID}
		queued, err := record.QueueMails(ctx, tx, []string{email}, mail)
		if err != nil || !queued {
			return err
		}
		return tx.Insert(ctx, &emailChange{
			UserID: user.ID, Email: email, MailID: mail.ID, ExpiresAt: tx.Now().Add(emailChangeLife),
		})
	})
}

// PendingEmail returns the email that waits for its confirmation, or "" if there is none.
func (c *Credentials) PendingEmail(ctx context.Context, session Session) (email string, err error) {
	err = c.db.NewSelect().Model((*emailChange)(nil)).Column("email").
		Where("user_id = ? AND expires_at > ?", session.UserID, c.db.Now()).Scan(ctx, &email)
	return email, value.NotFound("find a pending change of email", err, nil)
}

// CancelEmailChange ends the pending change of a session's user, if there is one.
func (c *Credentials) CancelEmailChange(ctx context.Context, session Session) error {
	return c.db.InTx(ctx, "cancel a change of email", func(ctx context.Context, tx db.Tx) error {
		if err := lockUser(ctx, tx, session.AccountID, session.UserID); err != nil {
			return err
		}
		return tx.DeleteOf(ctx, session.UserID, emailChanges.table)
	})
}

// ResendEmailChange queues a mail with a new link to the pending email of a session's user, returns
// the email and reports whether the limits of mails allowed it. The older link then ends. The error
// may be [value.ErrNoEmailChange].
func (c *Credentials) ResendEmailChange(ctx context.Context, session Session) (email string, sent bool, err error) {
	email, err = db.InTx(ctx, c.db, "send a link to a new email again", func(ctx context.Context, tx db.Tx) (email string, err error) {
		if err := lockUser(ctx, tx, session.AccountID, session.UserID); err != nil {
			return "", err
		}
		var change emailChange
		err = tx.NewSelect().Model(&change).Where("user_id = ? AND expires_at > ?", session.UserID, tx.Now()).Scan(ctx)
		if err != nil {
			return "", value.NoRows(err, value.ErrNoEmailChange)
		}
		mail := record.Mail{ID: value.NewID(), Kind: record.MailEmailConfirmation, AccountID: &session.AccountID}
		if sent, err = record.QueueMails(ctx, tx, []string{change.Email}, mail); err != nil || !sent {
			return change.Email, err
		}
		_, err = tx.NewUpdate().Model((*emailChange)(nil)).
			Set("mail_id = ?, token_hash = NULL, expires_at = ?", mail.ID, tx.Now().Add(emailChangeLife)).
			Where("user_id = ?", session.UserID).Exec(ctx)
		return change.Email, err
	})
	return email, sent, err
}

// CreateEmailChangeLink returns the token of the link in a queued mail, which replaces that of an
// earlier attempt. If the request has ended or a user has the email and proved it, it empties the
// recipient.
func CreateEmailChangeLink(ctx context.Context, tx db.Tx, mail *record.Mail) (token string, err error) {
	taken := tx.NewSelect().Model((*User)(nil)).Column("id").Where("email_hash = ? AND email_proven_at IS NOT NULL", value.StoredHash(mail.Recipient))
	token = value.NewToken()
	changed, err := value.Affected(tx.NewUpdate().Model((*emailChange)(nil)).Set("token_hash = ?", value.HashToken(token)).
		Where("mail_id = ? AND expires_at > ? AND NOT EXISTS (?)", mail.ID, tx.Now(), taken).Exec(ctx))
	if changed == 0 {
		mail.Recipient = ""
	}
	return token, err
}

// NewEmail returns the email that the link with this token confirms. The error may be
// [value.ErrMailLinkInvalid].
func (c *Credentials) NewEmail(ctx context.Context, token string) (email string, err error) {
	if _, err = emailChanges.findUser(ctx, c.db, token, c.db.Now()); err == nil {
		err = c.db.NewSelect().Model((*emailChange)(nil)).Column("email").Where("token_hash = ?", value.HashToken(token)).Scan(ctx, &email)
	}
	return email, value.Failed("find a change of email", value.NoRows(err, value.ErrMailLinkInvalid))
}

// ConfirmEmail gives the user of a link, whose sessions continue, the new email and returns the
// email. A user who has this email but never proved it gets another one; see freeEmail.
func (c *Credentials) ConfirmEmail(ctx context.Context, token, address string) (email string, err error) {
	err = c.db.InTx(ctx, "confirm email", func(ctx context.Context, tx db.Tx) error {
		user, err := emailChanges.findUser(ctx, tx, token, tx.Now())
		if err != nil {
			return err
		}
		if err := lockEnabled(ctx, tx, user.AccountID, user.ID); err != nil {
			return err
		}
		err = tx.NewDelete().Model((*emailChange)(nil)).Where("token_hash = ?", value.HashToken(token)).Returning("email").Scan(ctx, &email)
		if err != nil {
			return value.NoRows(err, value.ErrMailLinkInvalid)
		}
		if err := freeEmail(ctx, tx, email, uuid.Nil); err != nil {
			return err
		}
		return replaceEmail(ctx, tx, user.ID, email, new(tx.Now()), record.UserActor(user.ID, address))
	})
	return email, unlessTaken(ctx, c.db, email, err)
}

// ChangeEmail gives the user with the old email a new one, which counts as proven, also if it is
// the old one; see freeEmail. It is for operators.
func (c *Credentials) ChangeEmail(ctx context.Context, old, email string) error {
	email, err := value.CleanEmail(email)
	if err != nil {
		return err
	}
	err = c.db.InTx(ctx, "change email", func(ctx context.Context, tx db.Tx) error {
		user, err := FindUser(ctx, tx, "u.email_hash = ?", value.StoredHash(old))
		if err != nil {
			return err
		}
		if user.Email == email {
			return proveEmail(ctx, tx, user.ID)
		}
		if err := lockUser(ctx, tx, user.AccountID, user.ID); err != nil {
			return err
		}
		if err := freeEmail(ctx, tx, email, user.AccountID); err != nil {
			return err
		}
		return replaceEmail(ctx, tx, user.ID, email, new(tx.Now()), record.Operator())
	})
	return unlessTaken(ctx, c.db, email, err)
}

// unlessTaken returns [value.ErrEmailTaken] in place of the error of a change if a user has the
// email: because the hash is unique, the change may have failed for that reason.
func unlessTaken(ctx context.Context, db bun.IDB, email string, err error) error {
	if err == nil || email == "" || errors.Is(err, value.ErrUserNotFound) || errors.Is(err, value.ErrUnavailable) {
		return err
	}
	if taken := checkEmailFree(ctx, db, email, uuid.Nil); errors.Is(taken, value.ErrEmailTaken) {
		return taken
	}
	return err
}
