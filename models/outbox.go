package models

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

const (
	// mailLease is how long a claimed mail belongs to one instance. It is longer than an
	// attempt to send, so that two instances do not send the same mail.
	mailLease = 2 * time.Minute
	// mailKept is how long the portal tries to send a mail. For a password reset it is
	// resetMailKept, because the user waits for it and can ask for another one.
	mailKept      = 72 * time.Hour
	resetMailKept = time.Hour

	shortestMailRetry = 30 * time.Second
	longestMailRetry  = 15 * time.Minute
)

// MailPasswordForgotten is the kind of a mail with a link to set a new password,
// MailEmailConfirmation of one to confirm a new email, and MailKeysExpiring of one about keys that
// expire. All other kinds are the action that the mail reports.
const (
	MailPasswordForgotten Action = "password.forgotten"
	MailEmailConfirmation Action = "email.confirmation"
	MailKeysExpiring      Action = "api_key.expiring"
)

// Mail is an email in the outbox. Because the token of its link is created when it is sent, it
// holds no secret.
type Mail struct {
	bun.BaseModel `bun:"table:outbox,alias:mail"`

	ID         uuid.UUID `bun:",pk"` // the same in each attempt
	Kind       Action
	AccountID  *uuid.UUID
	ActivityID *uuid.UUID // the activity that the mail reports
	Recipient  string     // email address
	EmailHash  []byte     `bun:",nullzero"` // of the recipient of a password reset
	CreatedAt  time.Time
	DueAt      time.Time // of the next attempt, or the end of the lease
	DeviceHash []byte    `bun:"-"` // see Activity
	Attempts   int       // including the current one

	// The activity. ActorName is the user's email, "Operator" or "Someone".
	AccountName string     `bun:",scanonly"`
	ActorName   string     `bun:",scanonly"`
	Label       string     `bun:",scanonly"`
	KeyLastFour string     `bun:",scanonly"`
	LeakSource  LeakSource `bun:",scanonly"`
	LeakURL     string     `bun:"leak_url,scanonly"`
	Reason      string     `bun:",scanonly"` // of the revocation
	Address     string     `bun:",scanonly"`
	UserAgent   string     `bun:",scanonly"` // of the session that began; empty if it has ended
	At          time.Time  `bun:",scanonly"`

	Keys []Key `bun:"-"` // that expire; nil for other mails

	// The invitation, of a mail that has one.
	Role      Role      `bun:"-"`
	ExpiresAt time.Time `bun:"-"`
}

// MaskedKey returns the masked key that the mail is about, or "" if there is none.
func (m Mail) MaskedKey() string { return maskedIfKnown(m.KeyLastFour) }

// Leak returns the report of the key that the mail is about.
func (m Mail) Leak() Leak { return Leak{m.LeakSource, m.LeakURL} }

// Outbox holds the mails that are to be sent.
type Outbox struct{ db *DB }

// Claim returns the mail that has been due longest, and the token of its link if it has one. For
// the next two minutes no other caller gets the same mail. After sending it, the caller calls
// [Outbox.Sent] or [Outbox.Failed]. If no mail is due, the error is [ErrNoMail].
func (o *Outbox) Claim(ctx context.Context) (mail Mail, token string, err error) {
	for {
		// A transaction would lock the whole SQLite file, so the usual case avoids it.
		due, err := o.due(o.db).Exists(ctx)
		if err == nil && !due {
			err = ErrNoMail
		}
		if err != nil {
			return Mail{}, "", failed("claim a mail", err)
		}
		err = o.db.InTx(ctx, "claim a mail", func(ctx context.Context, tx Tx) error {
			mail, token, err = o.claim(ctx, tx)
			return err
		})
		if err != nil {
			return Mail{}, "", err
		}
		if mail.Recipient != "" {
			return mail, token, nil
		}
	}
}

// due selects the id of the mail that has been due longest.
func (o *Outbox) due(db bun.IDB) *bun.SelectQuery {
	return db.NewSelect().Model((*Mail)(nil)).Column("id").Where("mail.due_at <= ?", o.db.Now()).
		OrderExpr("mail.due_at, mail.id").Limit(1)
}

// claim leases the next mail. If the returned mail has no recipient, it was deleted, because
// nobody should get it.
func (o *Outbox) claim(ctx context.Context, tx Tx) (mail Mail, token string, err error) {
	due := o.db.locked(o.due(tx), "UPDATE SKIP LOCKED")
	var id uuid.UUID
	err = tx.NewUpdate().Model((*Mail)(nil)).Set("due_at = ?, attempts = attempts + 1", tx.Now().Add(mailLease)).
		Where("id = (?)", due).Returning("id").Scan(ctx, &id)
	if err != nil {
		return Mail{}, "", noRows(err, ErrNoMail)
	}
	err = tx.NewSelect().Model(&mail).ColumnExpr("?TableColumns").
		ColumnExpr("COALESCE(a.name, '') AS account_name").
		ColumnExpr("COALESCE(u.email, CASE activity.actor_kind WHEN ? THEN 'Operator' ELSE 'Someone' END) AS actor_name", ActorOperator).
		ColumnExpr("COALESCE(activity.label, '') AS label, COALESCE(activity.address, '') AS address").
		ColumnExpr("COALESCE(activity.at, mail.created_at) AS at").
		ColumnExpr("COALESCE(k.leak_source, '') AS leak_source, COALESCE(k.leak_url, '') AS leak_url").
		ColumnExpr("COALESCE(k.revocation_reason, '') AS reason").
		ColumnExpr("COALESCE(k.last_four, '') AS key_last_four, COALESCE(session.user_agent, '') AS user_agent").
		Join("LEFT JOIN accounts AS a ON a.id = mail.account_id").
		Join("LEFT JOIN activities AS activity ON activity.id = mail.activity_id").
		Join("LEFT JOIN users AS u ON u.id = activity.actor_id").
		Join("LEFT JOIN api_keys AS k ON k.id = activity.subject_id AND k.account_id = activity.account_id").
		Join("LEFT JOIN sessions AS session ON session.id = activity.subject_id").
		Where("mail.id = ?", id).Scan(ctx)
	if err != nil {
		return mail, "", err
	}
	switch mail.Kind {
	case MailPasswordForgotten:
		mail.Recipient, token, err = createPasswordResetLink(ctx, tx, mail)
	case MailEmailConfirmation:
		if token, err = createEmailChangeLink(ctx, tx, mail); token == "" {
			mail.Recipient = ""
		}
	case ActionInvitationCreated:
		if token, err = createInvitationLink(ctx, tx, &mail); token == "" {
			mail.Recipient = ""
		}
	case MailKeysExpiring:
		if mail.Keys, err = readExpiring(ctx, tx, mail); len(mail.Keys) == 0 {
			mail.Recipient = ""
		}
	default: // the others have no link of their own
	}
	if err == nil && mail.Recipient == "" {
		err = deleteMail(ctx, tx, mail)
	}
	return mail, token, err
}

// Sent deletes a mail that has been sent.
func (o *Outbox) Sent(ctx context.Context, mail Mail) error {
	return failed("delete a sent mail", deleteMail(ctx, o.db, mail))
}

// deleteMail deletes a mail unless its lease has ended and another instance has claimed it since.
func deleteMail(ctx context.Context, db bun.IDB, mail Mail) error {
	_, err := db.NewDelete().Model((*Mail)(nil)).Where("id = ? AND attempts = ?", mail.ID, mail.Attempts).Exec(ctx)
	return err
}

// Failed schedules the next attempt of a mail. If no attempt can succeed or the mail is too old, it
// deletes the mail instead and reports this.
func (o *Outbox) Failed(ctx context.Context, mail Mail, permanent bool) (dropped bool, err error) {
	kept := mailKept
	if mail.Kind == MailPasswordForgotten {
		kept = resetMailKept
	}
	retry := o.db.Now().Add(mailRetry(mail.Attempts))
	if permanent || retry.Sub(mail.CreatedAt) > kept {
		return true, failed("drop a mail", deleteMail(ctx, o.db, mail))
	}
	_, err = o.db.NewUpdate().Model((*Mail)(nil)).Set("due_at = ?", retry).
		Where("id = ? AND attempts = ?", mail.ID, mail.Attempts).Exec(ctx)
	return false, failed("schedule a mail", err)
}

// mailRetry returns the time from a failed attempt to the next one.
func mailRetry(attempts int) time.Duration {
	wait := shortestMailRetry
	for range min(attempts, 10) - 1 {
		wait *= 2
	}
	return min(wait, longestMailRetry)
}

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

// Waiting returns the number of mails in the outbox.
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
		mails[i] = Mail{Kind: activity.Action, AccountID: &activity.AccountID, ActivityID: &activity.ID, Recipient: recipient, DeviceHash: activity.DeviceHash}
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
	case ActionKeyLeaked:
		return ownersAndCreators(ctx, tx, activity.AccountID, *activity.SubjectID)
	default: // no mail reports the others
	}
	return nil, nil
}

// ownersOf returns the email addresses of the account's owners who can sign in.
func ownersOf(ctx context.Context, tx Tx, accountID uuid.UUID) ([]string, error) {
	return emailsOf(ctx, tx, "u.account_id = ? AND u.role = ? AND u.disabled_at IS NULL AND u.removed_at IS NULL", accountID, RoleOwner)
}

// ownersAndCreators returns the email addresses of at most maxOwnersMailed owners of the account,
// and then of the users who generated these keys, even if more owners than that exist.
func ownersAndCreators(ctx context.Context, tx Tx, accountID uuid.UUID, keys ...uuid.UUID) ([]string, error) {
	recipients, err := ownersOf(ctx, tx, accountID)
	if err != nil {
		return nil, err
	}
	ids := tx.NewSelect().Table("api_keys").Column("created_by").Where("account_id = ? AND id IN (?)", accountID, bun.List(keys))
	creators, err := emailsOf(ctx, tx, "u.account_id = ? AND u.id IN (?) AND u.disabled_at IS NULL AND u.removed_at IS NULL", accountID, ids)
	for _, creator := range creators {
		if !slices.Contains(recipients, creator) {
			recipients = append(recipients, creator)
		}
	}
	return recipients, err
}

func emailsOf(ctx context.Context, tx Tx, where string, args ...any) (emails []string, err error) {
	err = tx.NewSelect().Model((*User)(nil)).Column("email").Where(where, args...).
		OrderExpr("u.id").Limit(maxOwnersMailed).Scan(ctx, &emails)
	return emails, err
}

// queueMails adds mails of one kind and account, or of none, to the outbox and reports whether it
// did. If there is no room, it drops them and logs a warning. Those beyond the limits of their
// addresses are dropped too.
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
	if mails, err = limitMails(ctx, tx, mails); err != nil || len(mails) == 0 {
		return false, err
	}
	now := cmp.Or(mails[0].CreatedAt, tx.Now())
	for i := range mails {
		mails[i].ID, mails[i].CreatedAt, mails[i].DueAt = newID(), now, now
	}
	err = tx.Insert(ctx, &mails)
	return err == nil, err
}

const (
	// maxRecentMails is the number of mails of one kind that one address gets in an hour.
	maxRecentMails   = 10
	recentMailWindow = time.Hour
)

// recentMail counts a mail for [recentMailWindow].
type recentMail struct {
	bun.BaseModel `bun:"table:recent_mails"`

	ID         uuid.UUID `bun:",pk"`
	Kind       Action
	AccountID  *uuid.UUID
	EmailHash  []byte
	DeviceHash []byte `bun:"source,nullzero"`
	At         time.Time
}

// limitMails removes the mails whose addresses have reached the limit, or have got one about the
// same device, and counts the others. Password resets have a limit of their own. Concurrent
// transactions can exceed the limit by a few mails.
func limitMails(ctx context.Context, tx Tx, mails []Mail) ([]Mail, error) {
	if mails[0].Kind == MailPasswordForgotten {
		return mails, nil
	}
	now, recent := tx.Now(), make([]recentMail, len(mails))
	hashes := make([][]byte, len(mails))
	for i, mail := range mails {
		hashes[i] = hashEmail(mail.Recipient)
		recent[i] = recentMail{ID: newID(), Kind: mail.Kind, AccountID: mail.AccountID, EmailHash: hashes[i], DeviceHash: mail.DeviceHash, At: now}
	}
	var full [][]byte
	err := tx.NewSelect().Model((*recentMail)(nil)).Column("email_hash").
		Where("email_hash IN (?) AND kind = ? AND at > ?", bun.List(hashes), mails[0].Kind, now.Add(-recentMailWindow)).
		Group("email_hash").Having("count(*) >= ? OR max(CASE WHEN source = ? THEN 1 ELSE 0 END) = 1", maxRecentMails, mails[0].DeviceHash).
		Scan(ctx, &full)
	if err != nil {
		return nil, err
	}
	isFull := func(hash []byte) bool {
		return slices.ContainsFunc(full, func(other []byte) bool { return bytes.Equal(hash, other) })
	}
	mails = slices.DeleteFunc(mails, func(m Mail) bool { return isFull(hashEmail(m.Recipient)) })
	recent = slices.DeleteFunc(recent, func(r recentMail) bool { return isFull(r.EmailHash) })
	if len(recent) == 0 {
		return nil, nil
	}
	return mails, tx.Insert(ctx, &recent)
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
