package models

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

const (
	// maxInvitationMails is the number of mails with invitations that one account causes in an
	// hour, and maxRecipientInvitationMails of those that one address gets from all accounts.
	// Further invitations send no mail, and the inviter passes the link on.
	maxInvitationMails          = 50
	maxRecipientInvitationMails = 3

	invitationMailWindow = time.Hour
)

// invitationMail counts a mail with an invitation for [invitationMailWindow].
type invitationMail struct {
	bun.BaseModel `bun:"table:invitation_mails"`

	ID        uuid.UUID `bun:",pk"`
	AccountID uuid.UUID
	EmailHash []byte
	At        time.Time
}

// queueInvitation queues the mail of a new invitation and reports whether it did. It queues none if
// the limits are reached. The account must be locked. Concurrent invitations of several accounts
// can exceed the limit of an address by a few mails.
func queueInvitation(ctx context.Context, tx Tx, n Invitation, activityID uuid.UUID) (bool, error) {
	if !tx.db.mail {
		return false, nil
	}
	ofAccount, err := countInvitationMails(ctx, tx, "account_id = ?", n.AccountID, n.CreatedAt)
	if err != nil || ofAccount >= maxInvitationMails {
		return false, err
	}
	ofAddress, err := countInvitationMails(ctx, tx, "email_hash = ?", n.EmailHash, n.CreatedAt)
	if err != nil || ofAddress >= maxRecipientInvitationMails {
		return false, err
	}
	queued, err := queueMails(ctx, tx, []Mail{{
		Kind: ActionInvitationCreated, AccountID: &n.AccountID, ActivityID: &activityID, Recipient: n.Email,
	}})
	if err != nil || !queued {
		return false, err
	}
	_, err = tx.NewInsert().Model(&invitationMail{ID: newID(), AccountID: n.AccountID, EmailHash: n.EmailHash, At: n.CreatedAt}).Exec(ctx)
	return err == nil, err
}

// countInvitationMails returns the number of mails of the last hour.
func countInvitationMails(ctx context.Context, tx Tx, where string, value any, now time.Time) (int, error) {
	count, err := tx.NewSelect().Model((*invitationMail)(nil)).Where(where, value).
		Where("at > ?", now.Add(-invitationMailWindow)).Count(ctx)
	return int(count), err
}

// createInvitationLink gives the invitation of a queued mail a second token, which replaces that of
// an earlier attempt. It sets the role and the expiry of the mail. The token is empty if the
// invitation has ended.
func createInvitationLink(ctx context.Context, tx Tx, mail *Mail) (token string, err error) {
	token = newToken()
	subject := tx.NewSelect().Model((*Activity)(nil)).Column("subject_id").Where("activity.id = ?", mail.ActivityID)
	var invitation Invitation
	err = tx.NewUpdate().Model(&invitation).Set("mail_token_hash = ?", hashToken(token)).
		Where("id = (?)", subject).Where("expires_at > ?", tx.Now()).Returning("role, expires_at").Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	mail.Role, mail.ExpiresAt = invitation.Role, invitation.ExpiresAt
	return token, err
}
