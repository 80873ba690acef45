package models

import (
	"context"
	"log/slog"

	"github.com/google/uuid"
)

const (
	// maxMails limits the mails in the outbox, and maxAccountMails those of one account.
	// Further ones are dropped, because a change must not fail while no mail can be sent.
	maxMails        = 10_000
	maxAccountMails = 200
	// maxResetMails limits the password resets in the outbox, because any visitor can request
	// them.
	maxResetMails = 1000
	// maxOwnersMailed limits the owners who get a mail about a key.
	maxOwnersMailed = 50
)

// Enabled reports whether the store queues mails.
func (o *Outbox) Enabled() bool { return o.db.mail }

// Waiting returns the number of mails in the outbox. The error may be [ErrUnavailable].
func (o *Outbox) Waiting(ctx context.Context) (int, error) {
	count, err := o.db.NewSelect().Model((*Mail)(nil)).Count(ctx)
	return int(count), failed("count mails", err)
}

// queueNotice queues the mails about an activity in its transaction, if there are any.
func queueNotice(ctx context.Context, tx Tx, activity Activity) error {
	if !tx.db.mail {
		return nil
	}
	recipients, err := noticeRecipients(ctx, tx, activity)
	if err != nil || len(recipients) == 0 {
		return err
	}
	mails := make([]Mail, len(recipients))
	for i, recipient := range recipients {
		mails[i] = Mail{Kind: activity.Action, AccountID: &activity.AccountID, ActivityID: &activity.ID, Recipient: recipient}
	}
	_, err = queueMails(ctx, tx, mails)
	return err
}

// noticeRecipients returns the email addresses of those who get a mail about an activity.
func noticeRecipients(ctx context.Context, tx Tx, activity Activity) ([]string, error) {
	switch activity.Action {
	case ActionSignedIn:
		if activity.NewDevice != "" {
			return []string{activity.NewDevice}, nil
		}
	case ActionTOTPOn, ActionTOTPOff, ActionRecoveryCodesRenewed, ActionPasskeyAdded, ActionPasskeyRemoved,
		ActionIdentityConnected, ActionIdentityDisconnected:
		if activity.ActorID != nil {
			return emailsOf(ctx, tx, "u.id = ?", *activity.ActorID)
		}
	case ActionPasswordChanged, ActionPasswordReset, ActionSecondFactorReset, ActionCodesRefused:
		return []string{activity.Label}, nil
	case ActionEmailChanged:
		return []string{activity.FormerLabel}, nil
	case ActionKeyGenerated:
		return ownersOf(ctx, tx, activity.AccountID)
	case ActionKeyRevoked:
		if activity.ActorKind == ActorOperator {
			return ownersOf(ctx, tx, activity.AccountID)
		}
	default: // no mail reports the others
	}
	return nil, nil
}

// ownersOf returns the email addresses of the account's owners who can sign in.
func ownersOf(ctx context.Context, tx Tx, accountID uuid.UUID) ([]string, error) {
	return emailsOf(ctx, tx, "u.account_id = ? AND u.role = ? AND u.disabled_at IS NULL AND u.removed_at IS NULL", accountID, RoleOwner)
}

// emailsOf returns the email addresses of the users that match where.
func emailsOf(ctx context.Context, tx Tx, where string, args ...any) (emails []string, err error) {
	err = tx.NewSelect().Model((*User)(nil)).Column("email").Where(where, args...).
		OrderExpr("u.id").Limit(maxOwnersMailed).Scan(ctx, &emails)
	return emails, err
}

// queueMails adds mails of one account, or of none, to the outbox and reports whether it did. If
// there is no room, it drops them and logs a warning.
func queueMails(ctx context.Context, tx Tx, mails []Mail) (bool, error) {
	room, err := hasMailRoom(ctx, tx, mails[0].AccountID)
	if err != nil {
		return false, err
	}
	if !room {
		tx.db.mailsDropped.Add(uint64(len(mails)))
		tx.db.logger.WarnContext(ctx, "too many mails wait, so this one is dropped", slog.String("kind", string(mails[0].Kind)))
		return false, nil
	}
	now := tx.Now()
	for i := range mails {
		mails[i].ID, mails[i].CreatedAt, mails[i].DueAt = newID(), now, now
	}
	err = tx.Insert(ctx, &mails)
	return err == nil, err
}

// hasMailRoom reports whether the outbox has room for another mail of an account, or of none.
// Concurrent transactions can exceed the limits by a few mails.
func hasMailRoom(ctx context.Context, tx Tx, accountID *uuid.UUID) (bool, error) {
	own, limit := tx.NewSelect().Model((*Mail)(nil)), maxResetMails
	if accountID == nil {
		own = own.Where("mail.account_id IS NULL")
	} else {
		own, limit = own.Where("mail.account_id = ?", *accountID), maxAccountMails
	}
	count, err := own.Count(ctx)
	if err != nil || int(count) >= limit {
		return false, err
	}
	count, err = tx.NewSelect().Model((*Mail)(nil)).Count(ctx)
	return int(count) < maxMails, err
}
