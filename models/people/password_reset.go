package people

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"portal/models/internal/db"
	"portal/models/internal/throttle"
	"portal/models/record"
	"portal/models/value"
)

const (
	// passwordResetLife is how long the link in a mail can be used.
	passwordResetLife = 30 * time.Minute
	// maxPasswordResets is the maximum number of a user's unused links. Further requests send
	// no mail until one expires, so that nobody can fill the user's mailbox.
	maxPasswordResets = 3
)

// RequestPasswordReset queues a mail with a link that sets a new password. Because the user is
// looked up when the mail is sent, the work is the same whether or not a user has this email.
// Requests for the same email beyond the limit of wrong passwords are ignored. Those from an
// address beyond the limit are refused.
func (c *Credentials) RequestPasswordReset(ctx context.Context, email string, client Client) error {
	if _, err := value.CleanEmail(email); err != nil {
		return err
	}
	counted := []throttle.Subject{throttle.SubjectOf("reset email", string(value.HashEmail(email))), throttle.SubjectOf("reset address", value.Network(client.Address))}
	byEmail, byAddress := counted[:1], counted[1:]
	return c.db.InTx(ctx, "request a password reset", func(ctx context.Context, tx db.Tx) error {
		if err := throttle.Lock(ctx, tx, counted); err != nil {
			return err
		}
		if err := c.guesses.Check(ctx, tx, byAddress); err != nil {
			return err
		}
		err := c.guesses.Check(ctx, tx, byEmail)
		_, limited := errors.AsType[*value.SignInLimitError](err)
		if err != nil && !limited {
			return err
		}
		if err := c.guesses.Count(ctx, tx, counted); err != nil || limited {
			return err
		}
		hash := value.HashEmail(email)
		err = tx.NewSelect().Model((*User)(nil)).Column("email_hash").Where("email_hash = ?", value.StoredHash(email)).Scan(ctx, &hash)
		if err := value.NoRows(err, nil); err != nil {
			return err
		}
		_, err = record.QueueMails(ctx, tx, []string{""}, record.Mail{Kind: record.MailPasswordForgotten, EmailHash: hash})
		return err
	})
}

// CreatePasswordResetLink sets the recipient of a queued mail to the address of its user, and
// returns the token of a new link. If no user has the email, the user cannot sign in with a
// password, or has too many unused links, the recipient stays empty.
func CreatePasswordResetLink(ctx context.Context, tx db.Tx, mail *record.Mail) (token string, err error) {
	// The lock waits for a change of the email, which ends the links that it finds.
	err = lockUserWhere(ctx, tx, "email_hash = ? AND disabled_at IS NULL", mail.EmailHash)
	if err != nil {
		return "", value.Except(err, value.ErrWrongCredentials)
	}
	user, err := FindUser(ctx, tx, "u.email_hash = ?", mail.EmailHash)
	if err != nil || user.Disabled {
		return "", err
	}
	if err := checkOwnSignIn(ctx, tx.DB, tx, user.ID); err != nil {
		return "", value.Except(err, value.ErrOnlyByProvider)
	}
	unused, err := tx.NewSelect().Table(passwordResetLinks.table).
		Where("user_id = ? AND expires_at > ?", user.ID, tx.Now()).Count(ctx)
	// A retry replaces a link that the user may not have received.
	if err != nil || unused >= maxPasswordResets && mail.Attempts == 1 {
		return "", err
	}
	mail.Recipient = user.Email
	return passwordResetLinks.create(ctx, tx, user.ID, tx.Now().Add(passwordResetLife))
}

// PasswordResetUser returns the user of an unused link, or [value.ErrMailLinkInvalid].
func (c *Credentials) PasswordResetUser(ctx context.Context, token string) (User, error) {
	user, err := passwordResetLinks.findUser(ctx, c.db, token, c.db.Now())
	if err == nil {
		err = checkOwnSignIn(ctx, c.db, c.db, user.ID)
	}
	return user, value.Failed("find password reset", err)
}

// UsePasswordReset sets a new password for the user of a link, ends the user's sessions and links,
// records the activity, notes that the email is proven, and returns the user as
// [SignIn.VerifyPassword] does. An error does not use the link up. UsePasswordReset sets its own
// deadlines.
func (c *Credentials) UsePasswordReset(ctx context.Context, token, password string, client Client) (User, error) {
	user, accountName, err := c.checkPasswordReset(ctx, token)
	if err != nil {
		return User{}, err
	}
	if err := checkPassword(password, user.Email, accountName); err != nil {
		return User{}, err
	}
	hash, err := c.passwords.hash(ctx, strangerPlace(client), password)
	if err != nil {
		return User{}, err
	}
	return db.InTx(ctx, c.db, "use a password reset", func(ctx context.Context, tx db.Tx) (User, error) {
		if err := lockEnabled(ctx, tx, user.AccountID, user.ID); err != nil {
			return User{}, err
		}
		if err := checkOwnSignIn(ctx, tx.DB, tx, user.ID); err != nil {
			return User{}, err
		}
		if err := passwordResetLinks.use(ctx, tx, token); err != nil {
			return User{}, err
		}
		if err := proveEmail(ctx, tx, user.ID); err != nil {
			return User{}, err
		}
		err := replacePassword(ctx, tx, &user, hash, uuid.Nil, record.UserActor(user.ID, client.Address), record.ActionPasswordReset)
		return user, err
	})
}

// checkPasswordReset returns the user of a link and the name of the user's account.
func (c *Credentials) checkPasswordReset(ctx context.Context, token string) (User, string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.db.Timeout)
	defer cancel()
	user, err := c.PasswordResetUser(ctx, token)
	if err != nil {
		return User{}, "", err
	}
	account, err := FindAccount(ctx, c.db, user.AccountID)
	return user, account.Name, err
}
